"""Settings of the datagen source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from connect.api import Config, ConfigError, at_least, setting
from plugins.datagen.fields import record_of
from plugins.datagen.quickstarts import QUICKSTARTS


class DatagenConfig(Config):
    """Makes up records, the same ones for the same seed.

    The source partition is `{"task": number}`, the source offset `{"iteration": number}` of the next record.
    A restart goes on with the very next record. Each task makes `iterations` records of its own. `fields` is
    a JSON object from a field's name to its rules. A rule is one of `iteration`, `range`, `options` and
    `regex`, beside the `type`: int, long, float, double, boolean, string, record or array.
    """

    topics: list[str] = setting("The topics to write to, in turn.", default=[], importance="HIGH")
    topic: str | None = setting("Instead of `topics`: one topic.", default=None, importance="HIGH")
    quickstart: Literal["users", "orders", "pageviews"] | None = setting(
        "A shape of records that needs no `fields`.", default=None, importance="HIGH"
    )
    fields: str | None = setting(
        'The fields: `{"id": {"type": "long", "iteration": {}}, "code": {"regex": "[A-Z]{3}"}}`.',
        default=None,
        importance="HIGH",
    )
    key_field: str | None = setting(
        "The field whose value is the record's key; the quickstart's own if not set.", default=None
    )
    iterations: int = setting("Records of each task; the source ends then. -1: no end.", default=-1)
    rate: float = setting("Records per second of each task; 0: no bound.", default=0.0, check=at_least(0))
    max_interval: int = setting(
        "Wait a random time up to this between two records, in ms; 0: do not wait.",
        default=0,
        check=at_least(0),
    )
    random_seed: int = setting("The seed of the records' contents.", default=0, kind="LONG")
    batch_size: int = setting("Records per poll at most.", default=1000, check=at_least(1))

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        if bool(self.topic) == bool(self.topics):
            raise ConfigError("topic", self.topic or "", "set exactly one of topic and topics")
        if bool(self.fields) == bool(self.quickstart):
            raise ConfigError("fields", self.fields or "", "set exactly one of fields and quickstart")
        try:
            record, _ = record_of(self.rules())
        except ValueError as e:
            raise ConfigError("fields", self.fields or "", str(e)) from e
        if self.key_field and self.key_field not in record.fields:
            raise ConfigError("key.field", self.key_field, f"is none of {', '.join(record.fields)}")

    @property
    def key(self) -> str | None:
        """The name of the key's field, or None."""
        return self.key_field or (QUICKSTARTS[self.quickstart].key_field if self.quickstart else None)

    def rules(self) -> Mapping[str, Any]:
        """Return the rules of the fields. Raises ValueError if `fields` is no JSON."""
        if self.quickstart:
            return QUICKSTARTS[self.quickstart].fields
        rules: Mapping[str, Any] = json.loads(self.fields or "")
        return rules

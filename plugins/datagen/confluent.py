"""Confluent's datagen connector by its own keys, as far as DatagenSource does the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from connect.api import Config, ConfigError, SourceConnector, setting
from plugins.datagen.config import DatagenConfig
from plugins.datagen.fields import fields_of_avro
from plugins.datagen.source import DatagenSource, DatagenTask


class ConfluentDatagenConfig(Config):
    """Makes up records, with the keys of Confluent's connector.

    The records have the fields of Confluent's, with other contents. Avro schemas may use `arg.properties`
    with iteration, range, options, regex and length.
    """

    kafka_topic: str = setting("The topic to write to.", importance="HIGH")
    max_interval: int = setting("The longest random wait between two records, in ms.", default=500)
    iterations: int = setting("Records of each task; -1: no end.", default=-1)
    quickstart: Literal["users", "orders", "pageviews"] | None = setting(
        "A shape of records that needs no schema.", default=None
    )
    schema_string: str | None = setting("The records' Avro schema.", default=None)
    schema_filename: str | None = setting("A file with the records' Avro schema.", default=None)
    schema_keyfield: str | None = setting("The field whose value is the record's key.", default=None)
    random_seed: int = setting("The seed of the records' contents.", default=0, kind="LONG")

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together, or for an unsupported schema."""
        if sum(map(bool, (self.quickstart, self.schema_string, self.schema_filename))) != 1:
            raise ConfigError(
                "quickstart", "", "set exactly one of quickstart, schema.string and schema.filename"
            )
        DatagenConfig.parse(self.translated())

    def translated(self) -> dict[str, str]:
        """Return the config in DatagenSource's keys. Raises ConfigError if the schema is not supported."""
        config = {
            "topic": self.kafka_topic,
            "iterations": str(self.iterations),
            "random.seed": str(self.random_seed),
            "max.interval": str(max(0, self.max_interval)),
        }
        if self.schema_keyfield:
            config["key.field"] = self.schema_keyfield
        if self.quickstart:
            return {**config, "quickstart": self.quickstart}
        key, text = "schema.string", self.schema_string or ""
        try:
            if self.schema_filename:
                key = "schema.filename"
                text = Path(self.schema_filename).read_text(encoding="utf-8")
            fields, _ = fields_of_avro(json.loads(text))
        except (OSError, ValueError, KeyError) as e:
            raise ConfigError(key, self.schema_filename or text, f"cannot be used: {e}") from e
        return {**config, "fields": json.dumps(fields)}


class ConfluentDatagen(SourceConnector):
    """The datagen source under Confluent's class name."""

    CONFIG = ConfluentDatagenConfig
    VERSION = "1"
    task_class = DatagenTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config per task, in DatagenSource's keys."""
        translated: Mapping[str, str] = ConfluentDatagenConfig.parse(self.config).translated()
        inner = DatagenSource()
        inner.config = {**self.config, **translated}
        return inner.task_configs(max_tasks)

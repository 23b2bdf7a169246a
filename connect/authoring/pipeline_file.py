"""PipelineFile: a YAML file with a connector's config, records that go in, and records that are expected.

    connector: orders.properties        # a config file, relative to this one, or the settings themselves
    worker: {value.converter.schemas.enable: false}
    tests:
      - name: card numbers are masked
        records:
          - {topic: orders, key: a, value: {id: 1, card: "4929 0000"}}
        expect:
          - {topic: orders-masked, value: {id: 1, card: ""}}
      - name: text that is no JSON is refused
        records: [{topic: orders, value: "{"}]
        errors: [JSON]

For a sink, `records` are in the log: text is taken as its UTF-8 bytes, anything else as JSON. `expect` is
what the task's `put` gets. For a source, `records` are what the task's `poll` returns, and `expect` is what
is in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from connect.config import read_config_file
from connect.errors import ConfigError


class PipelineRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A record that goes in. Schemas are Connect's, as in the JSON converter's envelope."""

    topic: str
    partition: int = 0
    offset: int | None = None
    """For sinks; by default the record's place in the test."""
    timestamp: int | None = None
    """In ms since the epoch."""
    key: Any = None
    value: Any = None
    headers: dict[str, Any] = {}
    key_schema: dict[str, Any] | None = None
    """For sources."""
    value_schema: dict[str, Any] | None = None


class ExpectedRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A record that is expected to come out. Only what is written here is compared."""

    topic: str | msgspec.UnsetType = msgspec.UNSET
    partition: int | msgspec.UnsetType = msgspec.UNSET
    timestamp: int | msgspec.UnsetType = msgspec.UNSET
    key: Any = msgspec.UNSET
    value: Any = msgspec.UNSET
    headers: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class PipelineTest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A test of a pipeline."""

    name: str
    records: list[PipelineRecord]
    expect: list[ExpectedRecord] = []
    errors: list[str] = []
    """Parts of the errors of the records that fail, in order."""


class _Document(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    connector: str | dict[str, Any]
    worker: str | dict[str, Any] = {}
    tests: list[PipelineTest]


class PipelineFile(msgspec.Struct, kw_only=True):
    """The tests of one pipeline."""

    connector: Mapping[str, Any]
    worker: Mapping[str, Any]
    tests: list[PipelineTest]


def read_pipeline_file(path: Path) -> PipelineFile:
    """Read a file of tests. Raises ConfigError if it cannot be read, or has unknown keys."""
    try:
        document = msgspec.yaml.decode(path.read_bytes(), type=_Document)
    except OSError as e:
        raise ConfigError("FILE", path, f"cannot be read: {e.strerror}") from e
    except (msgspec.MsgspecError, UnicodeDecodeError) as e:
        raise ConfigError("FILE", path, f"is no file of pipeline tests: {e}") from e
    connector, worker = (_settings(path, each) for each in (document.connector, document.worker))
    return PipelineFile(connector=connector, worker=worker, tests=document.tests)


def _settings(path: Path, settings: str | dict[str, Any]) -> Mapping[str, Any]:
    if isinstance(settings, str):
        return read_config_file(path.parent / settings)
    return {key: value for key, value in settings.items() if value is not None}

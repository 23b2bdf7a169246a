"""Settings of converters that use a schema registry, by Confluent's keys; and the subjects of schemas."""

from __future__ import annotations

from connect.config import setting
from connect.config.checks import at_least
from connect.converters.registry.access import AccessConfig
from connect.errors import DataError
from kafka_client.errors import ConfigError

_STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
_CONFLUENTS = "io.confluent.kafka.serializers.subject."


def _is_strategy(value: str) -> None:
    if value.removeprefix(_CONFLUENTS) not in _STRATEGIES:
        raise ValueError(f"must be one of {', '.join(_STRATEGIES)}")


class RegistryConfig(AccessConfig):
    """Settings of converters with a schema registry."""

    auto_register_schemas: bool = setting(
        "Whether schemas are registered; if not, they must be in the registry already.", default=True
    )
    use_latest_version: bool = setting(
        "Whether values are written by the subject's latest schema; needs `auto.register.schemas=false`.",
        default=False,
    )
    latest_compatibility_strict: bool = setting(
        "Whether a field that the subject's latest schema lacks is an error; if not, it is left out.",
        default=True,
    )
    use_schema_id: int = setting(
        "The id of the schema that values are written by; -1: none is fixed.", default=-1, importance="LOW"
    )
    id_compatibility_strict: bool = setting(
        "Whether a field that the schema of `use.schema.id` lacks is an error; if not, it is left out.",
        default=True,
    )
    normalize_schemas: bool = setting(
        "Whether the registry brings schemas into its normal form.", default=False, importance="LOW"
    )
    key_subject_name_strategy: str = setting(
        "How subjects of keys are named.", default="TopicNameStrategy", check=_is_strategy, kind="STRING"
    )
    value_subject_name_strategy: str = setting(
        "How subjects of values are named.", default="TopicNameStrategy", check=_is_strategy, kind="STRING"
    )
    schemas_cache_config: int = setting(
        "How many schemas are remembered.", default=1000, importance="LOW", check=at_least(1)
    )
    max_schemas_per_subject: int = setting(
        "How many schemas to write by are remembered, if fewer than `schemas.cache.config`.",
        default=1000,
        importance="LOW",
        check=at_least(1),
    )

    def check(self) -> None:
        """Raise ConfigError for settings that exclude each other, or name no registry."""
        super().check()
        if self.use_latest_version and self.auto_register_schemas and "auto.register.schemas" in self.raw:
            raise ConfigError("auto.register.schemas", "true", "must be false with use.latest.version=true")


def subject_of(strategy: str, topic: str, *, is_key: bool, record_name: str | None) -> str:
    """Return a schema's subject. Raises DataError if the strategy needs a record's name and there is none."""
    match strategy.removeprefix(_CONFLUENTS), record_name:
        case "TopicNameStrategy", _:
            return f"{topic}-{'key' if is_key else 'value'}"
        case "RecordNameStrategy", str():
            return record_name
        case "TopicRecordNameStrategy", str():
            return f"{topic}-{record_name}"
    raise DataError(f"{strategy} needs a struct, and the value for topic {topic} is none")

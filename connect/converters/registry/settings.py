"""Settings of converters that use a schema registry, by Confluent's keys; and the subjects of schemas."""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote, urlsplit

from connect.config import Config, Password, setting
from connect.config.checks import at_least
from connect.errors import DataError
from kafka_client.errors import ConfigError

_STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
_CONFLUENTS = "io.confluent.kafka.serializers.subject."


def _is_strategy(value: str) -> None:
    if value.removeprefix(_CONFLUENTS) not in _STRATEGIES:
        raise ValueError(f"must be one of {', '.join(_STRATEGIES)}")


class RegistryConfig(Config):
    """Settings of converters with a schema registry."""

    schema_registry_url: list[str] = setting(
        "The registry's URLs; the next is used if one does not answer.", importance="HIGH"
    )
    basic_auth_credentials_source: Literal["URL", "USER_INFO"] = setting(
        "Where user and password are: in the URL, or in `basic.auth.user.info`.", default="URL"
    )
    basic_auth_user_info: Password = setting("`user:password`.", default=Password(""))
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
        """Raise ConfigError for URLs that are none, and for settings that exclude each other."""
        for url in self.schema_registry_url:
            if urlsplit(url).scheme not in ("http", "https"):
                raise ConfigError(
                    "schema.registry.url", url.rpartition("@")[2], "must begin with http:// or https://"
                )
        if not self.schema_registry_url:
            raise ConfigError("schema.registry.url", "", "must have a URL")
        if self.use_latest_version and self.auto_register_schemas and "auto.register.schemas" in self.raw:
            raise ConfigError("auto.register.schemas", "true", "must be false with use.latest.version=true")
        if self.basic_auth_credentials_source == "USER_INFO" and ":" not in self.basic_auth_user_info.secret:
            raise ConfigError("basic.auth.user.info", "[hidden]", "must be user:password")

    @property
    def credentials(self) -> str:
        """`user:password`, or nothing."""
        if self.basic_auth_credentials_source == "USER_INFO":
            return self.basic_auth_user_info.secret
        parts = (urlsplit(url).netloc.rpartition("@")[0] for url in self.schema_registry_url)
        return unquote(next(filter(None, parts), ""))


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

"""Settings of a worker, by Kafka's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from connect.config import Config, setting
from connect.config.checks import at_least
from connect.config.providers import ConfigProviders, hidden
from connect.runtime.override_policy import check_policy
from kafka_client.errors import ConfigError


class WorkerConfig(Config):
    """Settings of a standalone Connect worker."""

    bootstrap_servers: list[str] = setting(
        "Brokers to begin with, `host:port`.", default=["localhost:9092"], importance="HIGH"
    )
    key_converter: str = setting(
        "Converter of keys: json, string, bytes, Kafka's class name or `module:Class`.",
        default="json",
        importance="HIGH",
    )
    value_converter: str = setting("Converter of values.", default="json", importance="HIGH")
    header_converter: str = setting("Converter of headers.", default="simple", importance="LOW")
    offset_storage_file_filename: str = setting(
        "File of the source offsets.", default="connect.offsets", importance="HIGH"
    )
    offset_flush_interval_ms: int = setting(
        "How often offsets are committed.", default=60_000, kind="LONG", check=at_least(1)
    )
    offset_flush_timeout_ms: int = setting(
        "How long a stopping source waits for what it sent.", default=5_000, kind="LONG", check=at_least(0)
    )
    task_shutdown_graceful_timeout_ms: int = setting(
        "How long a stopping task may take before it is abandoned.",
        default=5_000,
        kind="LONG",
        check=at_least(0),
    )
    topic_creation_enable: bool = setting(
        "Whether connectors may say how their topics are created (KIP-158).", default=True, importance="LOW"
    )
    connector_client_config_override_policy: str = setting(
        "Which `producer.override.*`, `consumer.override.*` and `admin.override.*` connectors may set: All, "
        "None, Principal or Allowlist.",
        default="All",
        check=check_policy,
    )
    connector_client_config_override_allowlist: list[str] = setting(
        "Client settings that connectors may override under the policy Allowlist (KIP-1188).",
        default=[],
    )

    config_providers: list[str] = setting(
        "Names of providers of values for `${name:path:key}` in configs; the class of each is "
        "`config.providers.<name>.class`.",
        default=[],
        importance="LOW",
    )

    plugin_path: list[str] = setting(
        "Folders with plugins: files, packages, and folders with their own libraries. They hide no module of "
        "the worker's.",
        default=[],
        importance="LOW",
    )
    task_isolation: Literal["thread", "process"] = setting(
        "Where the tasks of connectors run that do not say so: `thread`, in the worker's process, or "
        "`process`, each in a process of its own.",
        default="thread",
    )

    PREFIXES: ClassVar[tuple[str, ...]] = (
        *("key.converter.", "value.converter.", "header.converter.", "producer.", "consumer.", "admin."),
        "config.providers.",
    )
    providers: ConfigProviders
    """The providers, which have replaced the variables in this config already."""

    @classmethod
    def examine(cls, raw: Mapping[str, Any]) -> tuple[Self, list[ConfigError]]:
        """Parse the config with the values of its variables. Raises ConfigError for an invalid provider."""
        providers = ConfigProviders.configured(raw)
        resolved = providers.resolve(raw)
        config, errors = super().examine(resolved)
        config.providers = providers
        return config, [hidden(raw, resolved, error) for error in errors]

    def check(self) -> None:
        """Raise ConfigError for `exactly.once.source.support`, which only groups have (KIP-618)."""
        key = "exactly.once.source.support"
        if (value := str(self.raw.get(key, "disabled"))).strip().lower() != "disabled":
            raise ConfigError(
                key,
                value,
                "is for distributed workers: a standalone worker keeps source offsets in a file, which is in "
                "no transaction",
            )

    @property
    def exactly_once_source_enabled(self) -> bool:
        """True if sources write records and offsets in transactions; never in a standalone worker."""
        return False

    @property
    def worker_group(self) -> str | None:
        """The name of the group of workers; None for a worker alone."""
        return None

    def converter_config(self, which: str, connector: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the name and settings of the converter `which` (`key.converter` ...) for a connector.

        As in Kafka, the worker's converter settings apply only if the connector names no converter of its
        own.
        """
        own = connector.get(which)
        source = connector if own else dict(self.raw)
        name = own or getattr(self, which.replace(".", "_"))
        prefix = which + "."
        return name, {k[len(prefix) :]: v for k, v in source.items() if k.startswith(prefix)}

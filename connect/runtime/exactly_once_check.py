"""The check of what a source's config asks of transactions: can worker and connector do it (KIP-618)?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from connect.api.source import SourceConnector
from connect.config import SourceConfig
from connect.errors import ConfigError
from connect.runtime.client_settings import BOOTSTRAP, cluster_of
from connect.runtime.plugins import ConnectorClass
from connect.runtime.worker_config import WorkerConfig

SUPPORT, BOUNDARY = "exactly.once.support", "transaction.boundary"


def exactly_once_errors(
    worker: WorkerConfig, plugin: ConnectorClass, raw: Mapping[str, Any]
) -> Iterator[ConfigError]:
    """Yield the errors of `exactly.once.support` and `transaction.boundary`, in Kafka's words."""
    if not issubclass(plugin, SourceConnector) or SourceConfig.examine(raw)[1]:
        return
    source = SourceConfig.parse(raw)
    config = {key: str.__str__(value) if isinstance(value, str) else str(value) for key, value in raw.items()}
    yield from _cluster_errors(worker, config)
    if is_required(source):
        yield from _support_errors(worker, plugin, raw[SUPPORT], config)
    if boundary(source) == "connector":
        yield from _boundary_errors(plugin, raw[BOUNDARY], config)


def is_required(source: SourceConfig) -> bool:
    """Return True if the connector may run with exactly-once support only."""
    return source.exactly_once_support.strip().lower() == "required"


def boundary(source: SourceConfig) -> str:
    """Return where transactions end: poll, interval or connector."""
    return source.transaction_boundary.strip().lower()


def _cluster_errors(worker: WorkerConfig, config: Mapping[str, str]) -> Iterator[ConfigError]:
    """Yield an error if records and offsets would be on two clusters, which no transaction spans."""
    servers = cluster_of(worker.raw, config, "producer", worker.bootstrap_servers)
    if worker.exactly_once_source_enabled and servers != list(worker.bootstrap_servers):
        yield ConfigError(
            f"producer.override.{BOOTSTRAP}",
            ",".join(servers),
            "is not the worker's cluster, which has the source offsets: run the connector in a group of "
            "workers on that cluster, or with exactly.once.source.support=disabled",
        )


def _support_errors(
    worker: WorkerConfig, plugin: type[SourceConnector], value: Any, config: Mapping[str, str]
) -> Iterator[ConfigError]:
    if not worker.exactly_once_source_enabled:
        yield ConfigError(SUPPORT, value, "This worker does not have exactly-once source support enabled.")
    supports, failure = _ask(lambda: plugin().exactly_once_support(config))
    if failure is not None:
        yield ConfigError(
            SUPPORT,
            value,
            f"Failed while validating connector support for exactly-once semantics: {failure!r}",
        )
    elif supports is None:
        yield ConfigError(
            SUPPORT,
            value,
            "The connector does not implement the API required for preflight validation of exactly-once "
            "source support. Please consult the documentation for the connector to determine whether it "
            "supports exactly-once semantics, and then consider reconfiguring the connector to use the value "
            '"requested" for this property (which will disable this preflight check and allow the connector '
            "to be created).",
        )
    elif not supports:
        yield ConfigError(
            SUPPORT,
            value,
            "The connector does not support exactly-once semantics with the provided configuration.",
        )


def _boundary_errors(
    plugin: type[SourceConnector], value: Any, config: Mapping[str, str]
) -> Iterator[ConfigError]:
    can_define, failure = _ask(lambda: plugin().can_define_transaction_boundaries(config))
    if failure is not None:
        yield ConfigError(
            BOUNDARY,
            value,
            "Failed while validating connector support for defining its own transaction boundaries: "
            f"{failure!r}",
        )
    elif not can_define:
        yield ConfigError(
            BOUNDARY,
            value,
            "The connector does not support connector-defined transaction boundaries with the given "
            "configuration. Please reconfigure it to use a different transaction boundary definition.",
        )


def _ask(question: Callable[[], bool | None]) -> tuple[bool | None, Exception | None]:
    """Return the plugin's answer, or the error that it raised instead."""
    try:
        return question(), None
    except Exception as e:
        return None, e

"""The keys of a worker's file that have no effect: Kafka's with the reason, unknown ones with the nearest."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from connect.config import Config, unknown_keys
from connect.runtime.client_settings import is_client_key

_log = logging.getLogger(__name__)
_OF_CLIENTS = "it is a setting of Java's clients"
NOT_USED: Mapping[str, str] = {
    "bootstrap.resolve.timeout.ms": _OF_CLIENTS,
    "client.dns.lookup": _OF_CLIENTS,
    "connections.max.idle.ms": _OF_CLIENTS,
    "metadata.cluster.check.enable": _OF_CLIENTS,
    "metadata.recovery.rebootstrap.trigger.ms": _OF_CLIENTS,
    "metadata.recovery.strategy": _OF_CLIENTS,
    "metric.reporters": "metrics are read at the path `/metrics` of the REST interface",
    "metrics.num.samples": "means and largest values are always of two windows, Kafka's default",
    "metrics.recording.level": "there is one level, and all metrics are told",
    "metrics.sample.window.ms": "a window is always 30 s, Kafka's default",
    "plugin.discovery": "plugins are found by their entry points, as `module:Class` and in `plugin.path`",
    "receive.buffer.bytes": _OF_CLIENTS,
    "send.buffer.bytes": _OF_CLIENTS,
    "socket.connection.setup.timeout.max.ms": _OF_CLIENTS,
    "socket.connection.setup.timeout.ms": _OF_CLIENTS,
}
"""Settings of Kafka's workers that have no effect here, each with the reason."""


def tell_unused(declarations: Sequence[type[Config]], config: Config) -> None:
    """Log each key of a worker's file that has no effect."""
    for key, nearest in _without_effect(declarations, config.raw):
        if key in NOT_USED:
            _log.warning("%s has no effect here: %s", key, NOT_USED[key])
        else:
            _log.warning("%s is not known and has no effect%s", key, f"; {nearest}?" if nearest else "")


def _without_effect(
    declarations: Sequence[type[Config]], raw: Mapping[str, Any]
) -> Iterator[tuple[str, str | None]]:
    """Yield keys that no declaration and no client has, each with the nearest one that has an effect."""
    prefixes = [prefix for each in declarations for prefix in each.PREFIXES]
    for key, nearest in unknown_keys(declarations, raw, prefixes).items():
        if not is_client_key(key):
            yield key, nearest

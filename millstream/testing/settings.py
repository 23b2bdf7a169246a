"""A broker's settings for tests: Kafka's keys, with values by which a test does not wait."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millstream.testing.errors import BrokerError

DAY_MS = 24 * 3600 * 1000

DEFAULTS: Mapping[str, str] = {
    "node.id": "1",
    # Groups form at once, and internal topics are made in a moment.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # Records with timestamps of long ago are common in tests; retention comes with an advance of the clock.
    "log.retention.check.interval.ms": str(DAY_MS),
    "log.segment.delete.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # Advancing the clock is not to look like a silent client.
    "connections.max.idle.ms": "-1",
}
OWN = ("log.dir", "log.dirs", "metadata.log.dir")


def broker_settings(config: Mapping[str, object], data: Path, port: int) -> dict[str, str]:
    """The defaults, and `config` on top; the listener is ours to say unless it does. BrokerError for folders,
    which are ours to clean.
    """
    for key in config:
        if key in OWN:
            raise BrokerError(f"{key}={config[key]} is not for a test to say: use Broker(folder=...)")
    return {
        **DEFAULTS,
        "log.dirs": str(data),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        **{key: _text(value) for key, value in config.items()},
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

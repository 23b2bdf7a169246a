"""Old names of settings, which tutorials of Kafka still use, and their current names.

An old name counts if the current one is not set. In both cases a note says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Renamed(NamedTuple):
    """The current key of an old one (empty: none), and how its value is converted."""

    today: str
    rewrite: Callable[[str], str] = str


def _minutes_to_ms(text: str) -> str:
    """Convert minutes to milliseconds. A text that is no number is returned as it is: parsing refuses it."""
    return str(int(text) * 60_000) if text.isdigit() else text


RENAMED: Mapping[str, Renamed] = {
    # Kafka 0.7
    "brokerid": Renamed("node.id"),
    "enable.zookeeper": Renamed(""),
    "log.cleanup.interval.mins": Renamed("log.retention.check.interval.ms", _minutes_to_ms),
    "log.default.flush.interval.ms": Renamed("log.flush.interval.ms"),
    "log.default.flush.scheduler.interval.ms": Renamed("log.flush.scheduler.interval.ms"),
    "log.file.size": Renamed("log.segment.bytes"),
    "log.flush.interval": Renamed("log.flush.interval.messages"),
    "log.retention.size": Renamed("log.retention.bytes"),
    "max.message.size": Renamed("message.max.bytes"),
    "max.socket.request.bytes": Renamed("socket.request.max.bytes"),
    "socket.receive.buffer": Renamed("socket.receive.buffer.bytes"),
    "socket.send.buffer": Renamed("socket.send.buffer.bytes"),
    # Kafka 0.8 to 3.x
    "log.cleanup.interval.ms": Renamed("log.retention.check.interval.ms"),
    "log.delete.delay.ms": Renamed("log.segment.delete.delay.ms"),
    "log.dir": Renamed("log.dirs"),
    "log.index.max.size.bytes": Renamed("log.index.size.max.bytes"),
    "offsets.topic.retention.minutes": Renamed("offsets.retention.minutes"),
    "request.logging.max.bytes": Renamed(""),
}

ADDRESS_KEYS: Mapping[str, str] = {
    "hostname": "listeners",
    "host.name": "listeners",
    "port": "listeners",
    "advertised.host.name": "advertised.listeners",
    "advertised.port": "advertised.listeners",
}
"""Old keys of hosts and ports, and the current key that contains them."""

CLUSTER_PREVIEW = "millstream.cluster.preview"
"""An old switch: zookeeper.connect only had an effect if it was true."""

NOTES: Mapping[str, str] = {
    CLUSTER_PREVIEW: "no effect: zookeeper.connect alone has a broker join a cluster today",
    "log.cleaner.min.cleanable.ratio": "taken; for one topic it is called min.cleanable.dirty.ratio",
    "replica.lag.max.messages": "no effect: lag is measured in time today, by replica.lag.time.max.ms",
    "log.message.format.version": "no effect: there is one message format today",
    "inter.broker.protocol.version": "no effect: brokers agree on versions themselves today",
    "quota.producer.default": "no effect: quotas are set on users and clients today",
    "quota.consumer.default": "no effect: quotas are set on users and clients today",
}
"""Notes on keys that are accepted under an old name, or no longer have an effect."""

SAME: Mapping[str, str] = {"broker.id": "node.id"}
"""Keys with two names that are both in use."""


def with_todays_names(properties: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """Return ``properties`` with current keys; a line for every old key is appended to ``notes``."""
    today = {key: value for key, value in properties.items() if not _is_old(key)}
    for key, same in SAME.items():
        if key in properties:
            today.setdefault(same, properties[key])
    for key, renamed in RENAMED.items():
        if key in properties and renamed.today:
            notes.append(f"{key} is called {renamed.today} today")
            today.setdefault(renamed.today, renamed.rewrite(properties[key]))
        elif key in properties:
            notes.append(f"{key} has no effect today")
    _join_addresses(properties, today, notes)
    if (difference := properties.get("log.message.timestamp.difference.max.ms")) is not None:
        notes.append(
            "log.message.timestamp.difference.max.ms is called log.message.timestamp.before.max.ms "
            "and log.message.timestamp.after.max.ms today"
        )
        today.setdefault("log.message.timestamp.before.max.ms", difference)
        today.setdefault("log.message.timestamp.after.max.ms", difference)
    notes.extend(f"{key}: {NOTES[key]}" for key in properties if key in NOTES)
    return today


def _is_old(key: str) -> bool:
    return (
        key in RENAMED
        or key in ADDRESS_KEYS
        or key in SAME
        or key == "log.message.timestamp.difference.max.ms"
    )


def _join_addresses(properties: Mapping[str, str], today: dict[str, str], notes: list[str]) -> None:
    for key, renamed in ADDRESS_KEYS.items():
        if key in properties:
            notes.append(f"{key} is part of {renamed} today, such as {renamed}=PLAINTEXT://host:port")
    host = properties.get("host.name", properties.get("hostname"))
    port = properties.get("port")
    if (host is not None or port is not None) and "listeners" not in today:
        today["listeners"] = f"PLAINTEXT://{host or ''}:{port or 9092}"
    host, port = properties.get("advertised.host.name"), properties.get("advertised.port")
    if (host or port) and "advertised.listeners" not in today:
        advertised = host or properties.get("host.name") or "127.0.0.1"
        today["advertised.listeners"] = f"PLAINTEXT://{advertised}:{port or properties.get('port') or 9092}"

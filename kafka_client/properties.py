"""Kafka's client keys as arguments of `Client`, `BatchProducer`, `TransactionalProducer`, `Consumer` and
`BatchFetcher`.

Connect, streams, mirror, the Spark source and the commands all read keys by this module. A caller names the
prefixes of its keys; later prefixes take precedence:

    keys = ClientProperties.layered(properties, "", "consumer.")
    Client(servers, **keys.client()), Consumer(client, **keys.consumer())
    keys.tell_rest(OWN_KEYS)       # logs keys without effect

`kafka_client.security` reads the keys of TLS and SASL.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kafka_client.errors import ConfigError
from kafka_client.java_properties import read_properties
from kafka_client.security.keys import SECRETS, SECURITY_KEYS, is_security_key
from kafka_client.security.secret import HIDDEN
from kafka_client.security.settings import SecuritySettings

_log = logging.getLogger(__name__)

Table = Mapping[str, tuple[str, Callable[[str], Any]]]
"""Kafka's key → the argument's name, and the parser of its value, which raises ValueError with what is
allowed.
"""


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


def _acks(text: str) -> int:
    if text not in ("all", "-1", "0", "1"):
        raise ValueError("must be all, -1, 0 or 1")
    return -1 if text == "all" else int(text)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_ASSIGNOR_PACKAGE = "org.apache.kafka.clients.consumer."


def _assignors(text: str) -> list[str]:
    """Return the names of assignors that are given by Kafka's classes, or by their names in the protocol."""
    names = [each.strip().removeprefix(_ASSIGNOR_PACKAGE) for each in text.split(",") if each.strip()]
    assignors = [_ASSIGNORS.get(name, name) for name in names]
    if not assignors or not set(assignors) <= set(_ASSIGNORS.values()):
        raise ValueError(f"must be of {', '.join(_ASSIGNORS)}")
    return list(dict.fromkeys(assignors))


CLIENT: Table = {
    "client.id": ("client_id", str),
    "request.timeout.ms": ("request_timeout_ms", _whole),
    "metadata.max.age.ms": ("metadata_max_age_ms", _whole),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _whole),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _whole),
    "retry.backoff.ms": ("retry_backoff_ms", _whole),
    "retry.backoff.max.ms": ("retry_backoff_max_ms", _whole),
}
CLIENT_KEYS = frozenset(CLIENT) | SECURITY_KEYS
"""Every key that has an effect on connections."""

PRODUCER: Table = {
    "acks": ("acks", _acks),
    "compression.type": ("compression_type", _one_of("none", "gzip", "snappy", "lz4", "zstd")),
    "linger.ms": ("linger_ms", _number),
    "batch.size": ("batch_size", _whole),
    "max.request.size": ("max_request_size", _whole),
    "enable.idempotence": ("enable_idempotence", _boolean),
    "buffer.memory": ("buffer_memory", _whole),
    "delivery.timeout.ms": ("delivery_timeout_ms", _whole),
    "max.in.flight.requests.per.connection": ("max_in_flight", _whole),
}
TRANSACTIONAL: Table = {
    "transactional.id": ("transactional_id", str),
    "transaction.timeout.ms": ("transaction_timeout_ms", _whole),
}
"""Keys of a transactional producer, besides those of `PRODUCER`; a plain one has no use for them."""
FETCHER: Table = {
    "isolation.level": ("isolation_level", _one_of("read_committed", "read_uncommitted")),
    "fetch.min.bytes": ("fetch_min_bytes", _whole),
    "fetch.max.wait.ms": ("fetch_max_wait_ms", _whole),
    "fetch.max.bytes": ("fetch_max_bytes", _whole),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _whole),
    "client.rack": ("client_rack", str),
}
CONSUMER: Table = {
    **FETCHER,
    "auto.offset.reset": ("auto_offset_reset", _one_of("none", "earliest", "latest")),
    "session.timeout.ms": ("session_timeout_ms", _whole),
    "heartbeat.interval.ms": ("heartbeat_interval_ms", _whole),
    "max.poll.interval.ms": ("rebalance_timeout_ms", _whole),
    "group.instance.id": ("group_instance_id", str),
    "partition.assignment.strategy": ("assignors", _assignors),
    "metadata.max.age.ms": ("topic_check_ms", _whole),  # a consumer notices new topics as often
}

_JAVAS = """
    allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter
    bootstrap.resolve.timeout.ms buffer.memory.allocation.strategy check.crcs client.dns.lookup
    compression.gzip.level compression.lz4.level compression.zstd.level config.providers
    connections.max.idle.ms default.api.timeout.ms enable.auto.commit enable.metrics.push
    exclude.internal.topics group.protocol group.remote.assignor interceptor.classes
    key.deserializer key.serializer max.block.ms max.poll.records metadata.cluster.check.enable
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys partitioner.rack.aware receive.buffer.bytes retries send.buffer.bytes
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms transaction.two.phase.commit.enable value.deserializer
    value.serializer
"""
OF_JAVA = frozenset(_JAVAS.split())
"""Keys of Kafka's Java clients without effect here."""


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """Kafka's keys without their prefixes, and how each was written."""

    values: Mapping[str, str]
    written: Mapping[str, str]

    @classmethod
    def layered(cls, properties: Mapping[str, object], *prefixes: str) -> Self:
        """Return the keys under each prefix ("": all keys); a later prefix overrides earlier ones."""
        return cls.of(*((prefix, properties) for prefix in prefixes))

    @classmethod
    def of(cls, *layers: tuple[str, Mapping[str, object]]) -> Self:
        """Return the keys under each layer's prefix in its properties; a later layer overrides earlier
        ones.
        """
        values: dict[str, str] = {}
        written: dict[str, str] = {}
        for prefix, properties in layers:
            for key, value in properties.items():
                if key.startswith(prefix) and value is not None:
                    inner = key[len(prefix) :]
                    # A password type derived from str may hide itself from str().
                    values[inner] = str.__str__(value) if isinstance(value, str) else str(value)
                    written[inner] = key
        return cls(values, written)

    def arguments(self, table: Table) -> dict[str, Any]:
        """Return the table's keys that are set, as arguments; raises ConfigError with key, value and what
        is allowed.
        """
        arguments: dict[str, Any] = {}
        for key, (name, parse) in table.items():
            if key in self.values:
                try:
                    arguments[name] = parse(self.values[key].strip())
                except ValueError as error:
                    raise ConfigError(self.written[key], self.values[key], str(error)) from None
        return arguments

    def client(self) -> dict[str, Any]:
        """Return arguments of `Client`, with `security` if a key of TLS or SASL is set."""
        arguments = self.arguments(CLIENT)
        if any(map(is_security_key, self.values)):
            protocol = "security.protocol"
            prefix = self.written.get(protocol, protocol).removesuffix(protocol)
            arguments["security"] = SecuritySettings.from_properties(
                self.values, prefix=prefix, written=self.written
            )
        return arguments

    def producer(self) -> dict[str, Any]:
        """Return arguments of `BatchProducer`."""
        return self.arguments(PRODUCER)

    def transactional_producer(self) -> dict[str, Any]:
        """Return arguments of `TransactionalProducer`.

        Raises ConfigError without a `transactional.id`, and for `acks` and `enable.idempotence` that a
        transaction cannot have, as in Kafka's producer.
        """
        arguments = self.arguments({**PRODUCER, **TRANSACTIONAL})
        if not arguments.get("transactional_id"):
            key = "transactional.id"
            raise ConfigError(self.written.get(key, key), self.values.get(key, ""), "must not be empty")
        for key, needed, must in (("acks", -1, "all"), ("enable.idempotence", True, "true")):
            if arguments.pop(PRODUCER[key][0], needed) != needed:
                raise ConfigError(self.written[key], self.values[key], f"must be {must} for transactions")
        return arguments

    def consumer(self) -> dict[str, Any]:
        """Return arguments of `Consumer`."""
        return self.arguments(CONSUMER)

    def fetcher(self) -> dict[str, Any]:
        """Return arguments of `BatchFetcher`."""
        return self.arguments(FETCHER)

    def tell_rest(self, effective: Collection[str]) -> None:
        """Log keys without effect: known ones in one line, unknown ones with the nearest known key.

        Known ones are those of Java's clients, and those of transactions for a plain producer. `effective`:
        the keys that the caller uses, besides those of TLS and SASL.
        """
        rest = {key for key in self.values if key not in effective and not is_security_key(key)}
        without_effect = OF_JAVA | TRANSACTIONAL.keys()
        if useless := sorted(self.written[key] for key in rest & without_effect):
            _log.warning("without effect here: %s", ", ".join(useless))
        for key in sorted(rest - without_effect):
            near = nearest(key, effective)
            _log.warning(
                "%s is not known and has no effect%s", self.written[key], f"; {near}?" if near else ""
            )


def one_client(
    properties: Mapping[str, object], prefixes: Iterable[str], roles: Iterable[str]
) -> ClientProperties:
    """Return the keys of the client that serves all `roles` (prefixes such as `consumer.`), where Kafka has
    several.

    A role's key must equal the shared one under `prefixes`: raises ConfigError otherwise.
    """
    shared = ClientProperties.layered(properties, *prefixes)
    own = ClientProperties.layered(properties, *roles)
    for key, written in own.written.items():
        if key in CLIENT_KEYS and own.values[key] != shared.values.get(key):
            text = HIDDEN if key in SECRETS else own.values[key]
            raise ConfigError(written, text, f"one client serves all here: set {key} without this prefix")
    return shared


def nearest(key: str, keys: Iterable[str], *, cutoff: float = 0.8) -> str | None:
    """Return the key that `key` may be a typing error of, None if none is alike. `cutoff`: the likeness, 0
    to 1.
    """
    return next(iter(difflib.get_close_matches(key, list(keys), 1, cutoff)), None)


def read_command_config(path: Path | None) -> dict[str, Any]:
    """Return arguments of `Client` from the file of a command's `--command-config`, as in Kafka's tools.

    Raises ConfigError for a file that cannot be read, and for a value that cannot be used.
    """
    if path is None:
        return {}
    properties = ClientProperties.layered(read_properties(path, "--command-config"), "")
    properties.tell_rest((*CLIENT, "bootstrap.servers"))
    return properties.client()

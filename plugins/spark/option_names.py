"""Names of options: with an effect here, of Spark's Kafka source and sink without one, and unknown ones.

A misspelt option would be ignored: the read would return all offsets instead of some, or aborted records
instead of committed ones. So an unknown option is an error, which names the most similar one. Spark passes
options in lower case. `options` parses the values.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterable, Mapping

from kafka_client.errors import ConfigError
from kafka_client.properties import CLIENT_KEYS, OF_JAVA, PRODUCER
from kafka_client.security.keys import is_security_key
from kafka_client.security.secret import HIDDEN

_log = logging.getLogger(__name__)

_READ = """
    subscribe subscribePattern assign startingOffsets startingTimestamp groupId groupIdPrefix
    startingOffsetsByTimestamp startingOffsetsByTimestampStrategy failOnDataLoss failOnUnreadableBatch
    minPartitions maxRecordsPerPartition includeHeaders kafkaConsumer.pollTimeoutMs kafka.bootstrap.servers
    kafka.isolation.level kafka.fetch.min.bytes
    kafka.fetch.max.wait.ms kafka.fetch.max.bytes kafka.max.partition.fetch.bytes
    kafka.client.rack
"""
"""Options of batch and stream reads. No group is joined, so `groupIdPrefix` changes nothing and is valid."""
_BATCH = "endingOffsets endingTimestamp endingOffsetsByTimestamp"
_STREAM = """
    maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay
    fetchOffset.numRetries fetchOffset.retryIntervalMs
"""
_CLIENT = " ".join(f"kafka.{key}" for key in sorted(CLIENT_KEYS))
"""Options of connections, TLS and SASL."""

_WRITE = " ".join(["topic includeHeaders kafka.bootstrap.servers", *(f"kafka.{key}" for key in PRODUCER)])
"""Options of writes. The column `headers` is always written, so `includeHeaders` changes nothing."""

_WRITE_STREAM = "exactlyOnce transactionalIdPrefix kafka.transaction.timeout.ms"

_WITHOUT_EFFECT = """
    kafka.allow.auto.create.topics kafka.auto.commit.interval.ms
    kafka.check.crcs kafka.client.dns.lookup kafka.connections.max.idle.ms
    kafka.default.api.timeout.ms kafka.enable.metrics.push kafka.exclude.internal.topics kafka.group.id
    kafka.group.instance.id kafka.group.protocol kafka.group.remote.assignor kafka.heartbeat.interval.ms
    kafka.max.poll.interval.ms kafka.max.poll.records kafka.metadata.recovery.rebootstrap.trigger.ms
    kafka.metadata.recovery.strategy kafka.metric.reporters kafka.metrics.num.samples
    kafka.metrics.recording.level kafka.metrics.sample.window.ms kafka.partition.assignment.strategy
    kafka.receive.buffer.bytes kafka.send.buffer.bytes kafka.session.timeout.ms
    kafka.socket.connection.setup.timeout.max.ms kafka.socket.connection.setup.timeout.ms
"""
"""Options of Spark's Kafka source and of Kafka's consumer that have no effect here."""

_REFUSED = {
    "kafka.auto.offset.reset": "startingOffsets says where to start",
    "kafka.enable.auto.commit": "nothing is committed",
    "kafka.interceptor.classes": "there are no interceptors",
    "kafka.key.deserializer": "keys are bytes: decode them with DataFrame operations",
    "kafka.value.deserializer": "values are bytes: decode them with DataFrame operations",
}
"""Options that Spark's Kafka source refuses too, with the reason."""
_REFUSED_WRITE = {
    "kafka.key.serializer": "keys are bytes or text: encode them with DataFrame operations",
    "kafka.value.serializer": "values are bytes or text: encode them with DataFrame operations",
    "kafka.transactional.id": "use exactlyOnce and transactionalIdPrefix: each task has an id of its own",
}
"""Options that a write refuses, with the reason; the serializers are refused by Spark's Kafka sink, too."""

_SPARKS_OWN = """
    path paths provider owner comment location external is_managed_location collation table_type
"""
"""Options that Spark adds: from `load(path)`, and the properties of a table in its catalogue."""

_SPARKS_OWN_STREAM = "checkpointLocation queryName"
"""Options of `writeStream` that are for Spark, and that it passes on."""


def _names(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).lower().split())


BATCH_READ = _names(_READ, _BATCH, _CLIENT)
STREAM_READ = _names(_READ, _STREAM, _CLIENT)
WRITE = _names(_WRITE, _CLIENT)
WRITE_STREAM = _names(_WRITE, _WRITE_STREAM, _CLIENT, _SPARKS_OWN_STREAM)
EFFECTIVE = BATCH_READ
"""Options that have an effect on the sink's reads."""


def _by_lower_case(*texts: str) -> dict[str, str]:
    return {name.lower(): name for name in " ".join(texts).split()}


_NAMES = _by_lower_case(_READ, _BATCH, _STREAM, _CLIENT, _WITHOUT_EFFECT)
_NAMES_WRITE = _by_lower_case(_WRITE, _WRITE_STREAM, _CLIENT, *(f"kafka.{key}" for key in sorted(OF_JAVA)))


def misspelt(keys: Iterable[str]) -> dict[str, str | None]:
    """Return the unknown keys, each with the most similar known one, or None."""
    unknown = [key for key in keys if key.lower() not in _NAMES and key.lower() not in _REFUSED]
    return {key: _nearest(key.lower(), _NAMES) for key in unknown}


def check_names(options: Mapping[str, str], effective: Collection[str]) -> None:
    """Check the options of a read.

    Raises ConfigError for an unknown or refused option; logs a warning for one that is not `effective`.
    """
    _check(options, effective, _NAMES, _REFUSED, "source")


def check_names_of_write(options: Mapping[str, str], effective: Collection[str]) -> None:
    """Check the options of a write, as `check_names` does."""
    _check(options, effective, _NAMES_WRITE, _REFUSED_WRITE, "sink")


def _check(
    options: Mapping[str, str],
    effective: Collection[str],
    names: Mapping[str, str],
    refused: Mapping[str, str],
    role: str,
) -> None:
    for key, value in options.items():
        name = key.lower()
        if name in effective or name in _SPARKS_OWN.split() or name.startswith("option."):
            continue
        if is_security_key(name.removeprefix("kafka.")) and name.startswith("kafka."):
            continue  # an invalid one is refused where security options are parsed
        if name in refused:
            raise ConfigError(key, value, f"is not taken: {refused[name]}")
        nearest = None if name in names else _nearest(name, names)
        if nearest is not None:
            # Written without `kafka.` it may be a password.
            shown = HIDDEN if is_security_key(name) else value
            raise ConfigError(key, shown, f"is not an option; {nearest}?")
        if name not in names and not name.startswith("kafka."):
            raise ConfigError(key, value, f"is not an option of the {role}")
        # A client of Kafka takes keys of its own plugins, too.
        _log.warning("%s has no effect here", names.get(name, key))


def _nearest(name: str, names: Mapping[str, str]) -> str | None:
    """Return the most similar of the names, also comparing with the prefix `kafka.`, or None."""
    if f"kafka.{name}" in names:
        return names[f"kafka.{name}"]
    near = difflib.get_close_matches(name, names, 1, 0.8)
    return names[near[0]] if near else None

"""Parses the options of writes by `format("millstream")`: those of Spark's Kafka sink, in any case."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kafka_client.errors import ConfigError
from kafka_client.properties import ClientProperties
from plugins.spark.option_names import WRITE, WRITE_STREAM, check_names_of_write
from plugins.spark.option_values import OptionValues
from plugins.spark.options import CLIENT_ID

DEFAULT_PREFIX = "millstream-spark"
TRANSACTION_TIMEOUT_MS = 900_000
"""The longest that brokers allow by default (transaction.max.timeout.ms): a task may compute for minutes."""
_OF_EXACTLY_ONCE = ("transactionalIdPrefix", "kafka.transaction.timeout.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Parsed options of a batch write or a stream."""

    bootstrap_servers: str
    topic: str | None
    """The topic of all rows; None if the column `topic` names it."""
    client: Mapping[str, Any]
    """Keyword arguments of `Client`, security among them."""
    producer: Mapping[str, Any]
    """Keyword arguments of `BatchProducer`; with `exactly_once` those of `TransactionalProducer`."""
    exactly_once: bool = False
    transactional_id_prefix: str = DEFAULT_PREFIX


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a batch write.

    Raises ConfigError with the key, its value and the allowed values.
    """
    values = OptionValues(options)
    for key in ("exactlyOnce", *_OF_EXACTLY_ONCE):
        if (value := values.get(key)) is not None:
            raise ConfigError(key, value, "is for streams: a batch write has no number to be recognised by")
    return _parse(options, WRITE)


def parse_stream_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a stream's writes.

    Raises ConfigError as `parse_write_options` does, and for settings of the producer that transactions
    cannot have.
    """
    parsed, values = _parse(options, WRITE_STREAM), OptionValues(options)
    if not values.boolean("exactlyOnce", False):
        for key in _OF_EXACTLY_ONCE:
            if (value := values.get(key)) is not None:
                raise ConfigError(key, value, "has an effect with exactlyOnce=true only")
        return parsed
    prefix = values.get("transactionalIdPrefix") or DEFAULT_PREFIX
    # The properties need an id to be complete; each task has its own, which begins with the prefix.
    keys = ClientProperties.of(("kafka.", values.by_name), ("", {"transactional.id": prefix}))
    producer = keys.transactional_producer()
    del producer["transactional_id"]
    producer = {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS, **producer}
    return replace(parsed, producer=producer, exactly_once=True, transactional_id_prefix=prefix)


def _parse(options: Mapping[str, str], names: Collection[str]) -> WriteOptions:
    check_names_of_write(options, names)
    values = OptionValues(options)
    values.boolean("includeHeaders", False)
    keys = ClientProperties.layered(values.by_name, "kafka.")
    topic = values.get("topic")
    return WriteOptions(
        bootstrap_servers=values.required("kafka.bootstrap.servers"),
        topic=None if topic is None else topic.strip(),
        # Brokers with auto.create.topics.enable create a missing topic, as for Kafka's producer.
        client={"client_id": CLIENT_ID, "allow_auto_topic_creation": True, **keys.client()},
        producer=keys.producer(),
    )

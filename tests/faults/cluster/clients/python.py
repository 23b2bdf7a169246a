"""kafka-python: see `speech`."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.faults.cluster.clients import speech
from tests.faults.cluster.clients.speech import say

QUICK: dict[str, Any] = {"retry_backoff_ms": speech.BACKOFF_MS, "reconnect_backoff_max_ms": speech.BACKOFF_MS}


def write(servers: str, topic: str, partitions: int, is_over: threading.Event) -> int:
    producer = KafkaProducer(
        **QUICK,
        bootstrap_servers=servers.split(","),
        enable_idempotence=True,
        linger_ms=1,
        delivery_timeout_ms=speech.DELIVERY_MS,
        max_block_ms=speech.DELIVERY_MS,
    )
    counts = {"acked": 0}
    lost: list[BaseException] = []

    def acknowledged(number: int, where: Any) -> None:
        counts["acked"] += 1
        say("acked", number, where.partition, where.offset)

    sent = 0
    while not is_over.is_set():
        time.sleep(speech.PAUSE_S)
        for _ in range(speech.AT_ONCE if sent - counts["acked"] < speech.WAITING_MAX else 0):
            delivery = producer.send(topic, b"%d" % sent, partition=sent % partitions)
            delivery.add_callback(partial(acknowledged, sent))
            delivery.add_errback(lost.append)
            sent += 1
        assert not lost, lost
    producer.flush(speech.DELIVERY_MS / 1000)
    assert not lost, lost
    producer.close()
    return sent


def read(servers: str, topic: str, group: str, is_over: threading.Event) -> None:
    consumer = KafkaConsumer(
        topic,
        **QUICK,
        bootstrap_servers=servers.split(","),
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=speech.SESSION_MS,
        heartbeat_interval_ms=speech.SESSION_MS // 10,
        metadata_max_age_ms=2000,
    )
    # A member that assigns before it knows the topic joins again when it does, and kafka-python 3.0.12 may
    # lose that second join.
    while not consumer.partitions_for_topic(topic):
        time.sleep(speech.PAUSE_S)
    while not is_over.is_set():
        polled = consumer.poll(speech.POLL_MS, max_records=speech.READ_AT_ONCE)
        ends: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp, messages in polled.items():
            for message in messages:
                say("read", tp.partition, message.offset, int(message.value))
                ends[tp] = OffsetAndMetadata(message.offset + 1, "", -1)
        # A join that ends while something else is asked for is lost to kafka-python 3.0.12.
        if ends and not consumer._coordinator.rejoining:
            commit(consumer, ends)
    consumer.close()


def commit(consumer: KafkaConsumer, ends: dict[TopicPartition, OffsetAndMetadata]) -> None:
    """Say what was done; what was not is the next commit's."""
    try:
        consumer.commit(ends)
    except KafkaError:
        return
    for tp, end in ends.items():
        say("committed", tp.partition, end.offset)


if __name__ == "__main__":
    speech.main(write, read)

"""confluent-kafka, which is librdkafka: see `speech`."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.faults.cluster.clients import speech
from tests.faults.cluster.clients.speech import say

QUIET: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.max.ms": speech.BACKOFF_MS,
    "retry.backoff.max.ms": speech.BACKOFF_MS,
    "topic.metadata.refresh.fast.interval.ms": 50,
}


def write(servers: str, topic: str, partitions: int, is_over: threading.Event) -> int:
    settings = {
        **QUIET,
        "bootstrap.servers": servers,
        "enable.idempotence": True,
        "linger.ms": 1,
        "delivery.timeout.ms": speech.DELIVERY_MS,
    }
    producer = Producer(settings)
    lost: list[object] = []

    def delivered(error: object, message: Message) -> None:
        if error is not None:
            lost.append(error)
        else:
            # librdkafka knows no offset of a batch that the broker calls a duplicate.
            offset = message.offset()
            say("acked", int(message.value() or b""), message.partition(), -1 if offset is None else offset)

    sent = 0
    while not is_over.wait(speech.PAUSE_S):
        producer.poll(0)
        for _ in range(speech.AT_ONCE if len(producer) < speech.WAITING_MAX else 0):
            producer.produce(topic, b"%d" % sent, partition=sent % partitions, on_delivery=delivered)
            sent += 1
        assert not lost, lost
    producer.flush(speech.DELIVERY_MS / 1000)
    assert not lost, lost
    return sent


def read(servers: str, topic: str, group: str, is_over: threading.Event) -> None:
    settings = {
        **QUIET,
        "bootstrap.servers": servers,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": speech.SESSION_MS,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not is_over.is_set():
        ends: dict[int, int] = {}
        for message in consumer.consume(speech.READ_AT_ONCE, timeout=speech.POLL_MS / 1000):
            if message.error() is None:
                partition, offset = message.partition(), message.offset()
                say("read", partition, offset, int(message.value() or b""))
                ends[partition] = offset + 1
        if ends:
            commit(consumer, [TopicPartition(topic, partition, end) for partition, end in ends.items()])
    consumer.close()


def commit(consumer: Consumer, ends: list[TopicPartition]) -> None:
    """Say what was done; what was not is the next commit's."""
    try:
        done = consumer.commit(offsets=ends, asynchronous=False)
    except KafkaException:
        return
    for each in done or ():
        if each.error is None:
            say("committed", each.partition, each.offset)


if __name__ == "__main__":
    speech.main(write, read)

"""Kafka's ErrorHandlingIntegrationTest against our worker.

| Kafka's method | here |
|---|---|
| testSkipRetryAndDLQWithHeaders | test_a_sink_skips_retries_and_writes_dead_letters_with_headers |
| testErrantRecordReporter | test_records_reported_from_two_threads_are_dead_letters |

Kafka's second test counts the records of the queue alone; here each record's place and offset is compared,
and the group's offset, which passes none before its dead letter is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from tests.connect.kafka_workers.plugins import ErrantSink, FaultyPassthrough, MonitorableSink, reference
from tests.connect.kafka_workers.worker_script import STRING, WorkerScript

COUNT = 20
CONTEXT = "__connect.errors."
ERRORS = {
    "key.converter": STRING,
    "value.converter": STRING,
    "errors.log.enable": "true",
    "errors.log.include.messages": "true",
    "errors.deadletterqueue.context.headers.enable": "true",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.tolerance": "all",
    "errors.retry.timeout": "1000",
}
FAULTY = {
    "transforms": "failing_transform",
    "transforms.failing_transform.type": reference(FaultyPassthrough),
}


async def write(bootstrap: str, topic: str, values: Sequence[str]) -> None:
    """Make a topic of one partition with these values, and keys beside them."""
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        async with BatchProducer(client) as producer:
            records = [
                (n, b"key-%d" % n, value.encode(), (("own", b"%d" % n),)) for n, value in enumerate(values)
            ]
            await (await producer.send(topic, 0, records))


async def headers_of(kit: Any, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, str]]]:
    """Return key, value and headers of every record of a topic with one partition."""
    tp, rows = TopicPartition(topic, 0), []
    async with Client(kit.bootstrap) as client:
        (end,) = (await Admin(client).list_offsets({tp: "latest"})).values()
        async with BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
            fetcher.assign({tp: 0})
            while fetcher.position(tp) < end.offset:
                for fetched in await fetcher.fetch(timeout_ms=1000):
                    for _, _, key, value, headers in fetched.records():
                        rows.append((key, value, {name: text.decode() for name, text in headers}))
    return rows


async def test_a_sink_skips_retries_and_writes_dead_letters_with_headers(worker, kit, topic, name):
    dead = {"errors.deadletterqueue.topic.name": f"{topic}-dead"}
    await write(kit.bootstrap, topic, [f"value-{n}" for n in range(COUNT)])
    worker.put(name, worker.sink(name, topic, MonitorableSink) | ERRORS | FAULTY | dead)
    worker.wait_running(name)
    worker.wait_until(lambda: len(worker.events(name, "put")) >= COUNT - 1)
    values = [event["value"] for event in worker.events(name, "put")]
    assert values == [f"value-{n}" for n in range(COUNT) if n != 7]
    # The rows that went well may be put before the dead letter is written; offsets are committed after both.
    worker.wait_until(lambda: committed(worker, name) == COUNT)
    ((key, value, headers),) = await headers_of(kit, f"{topic}-dead")
    assert (key, value, headers["own"]) == (b"key-7", b"value-7", "7")
    context = {key.removeprefix(CONTEXT): text for key, text in headers.items() if key.startswith(CONTEXT)}
    assert context.pop("exception.stacktrace").startswith("Traceback")
    assert context == {
        "topic": topic,
        "partition": "0",
        "offset": "7",
        "connector.name": name,
        "task.id": "0",
        "stage": "TRANSFORMATION",
        "class.name": reference(FaultyPassthrough).replace(":", "."),
        "exception.class.name": "connect.errors.RetriableError",
        "exception.message": "Error when value='value-7'",
    }
    assert worker.states(name) == ("RUNNING", ["RUNNING"])
    log = worker.group.log(worker.urls[0]).read_text()
    assert f"{topic}-0, offset 7" in log and "value-7" in log


async def test_records_reported_from_two_threads_are_dead_letters(worker, kit, topic, name):
    dead = {"errors.deadletterqueue.topic.name": f"{topic}-dead"}
    await write(kit.bootstrap, topic, [f"value-{n}" for n in range(COUNT)])
    worker.put(name, worker.sink(name, topic, ErrantSink) | ERRORS | dead)
    worker.wait_running(name)
    worker.wait_until(lambda: committed(worker, name) == COUNT)
    rows = await headers_of(kit, f"{topic}-dead")
    places = {int(headers[f"{CONTEXT}offset"]): (key, value) for key, value, headers in rows}
    assert places == {n: (b"key-%d" % n, b"value-%d" % n) for n in range(COUNT)}
    assert len(rows) == COUNT
    for _, _, headers in rows:
        assert headers[f"{CONTEXT}stage"] == "TASK_PUT"
        assert headers[f"{CONTEXT}exception.message"] == "errant"
        assert headers[f"{CONTEXT}class.name"].endswith("ErrantSinkTask")


def committed(worker: WorkerScript, name: str) -> int | None:
    """Return the only offset of a sink's group; None without one."""
    rows = worker.do("GET", f"/connectors/{name}/offsets")["offsets"]
    return rows[0]["offset"]["kafka_offset"] if rows else None

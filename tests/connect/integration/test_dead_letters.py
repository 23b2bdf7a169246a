"""Dead letters of a sink in a real log: written, counted, and written back once the sink understands them."""

from connect.dlq.queue import DeadLetterQueue
from connect.runtime import Worker
from kafka_client import Admin, BatchProducer, Client, NewTopic

VALUES = [b'{"n": 0}', b"{", b'{"n": 2}', b"nothing", b'{"n": 4}']


async def test_bad_records_are_in_the_queue_and_the_others_in_the_target(kit, topic, tmp_path):
    dead = f"{topic}-dead"
    config = kit.sink(tmp_path / "out", topic) | {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    async with Client(kit.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        async with BatchProducer(client) as producer:
            records = [(n, b"k", value, (("h", b"%d" % n),)) for n, value in enumerate(VALUES)]
            await (await producer.send(topic, 0, records))
        async with Worker(kit.config()) as worker:
            await worker.start_connector(config)
            await worker.wait_done()
            (report,) = worker.status()
            assert report["tasks"][0]["records_delivered"] == 3
            assert report["tasks"][0]["records_skipped"] == 2
        queue = DeadLetterQueue(client, dead)
        letters = [letter async for letter in queue.letters()]
        assert [(each.timestamp, each.value, each.headers) for each in letters] == [
            (1, b"{", (("h", b"1"),)),
            (3, b"nothing", (("h", b"3"),)),
        ]
        assert [(each.origin, each.partition, each.context["offset"]) for each in letters] == [
            (topic, 0, "1"),
            (topic, 0, "3"),
        ]
        assert (await queue.retry(lambda letter: True)).written == 2
        (end,) = (await Admin(client).list_offsets({letters[0].tp._replace(topic=topic): "latest"})).values()
        assert end.offset == 7
    written = "".join(path.read_text() for path in sorted((tmp_path / "out").rglob("*")) if path.is_file())
    assert [n for n in range(5) if f'"n":{n}' in written.replace(" ", "")] == [0, 2, 4]

"""SIGKILL of the worker and of the broker, in the middle of files.

What must hold: the stored source offset is never ahead of what the log has acknowledged; every row is in
the topic at least once after the restart, in order per key; a files sink has every record exactly once.
"""

import asyncio
import json
from collections import defaultdict

import pytest

from kafka_client import BatchProducer, Client
from tests.support import depth
from tests.support.connections import has_connections
from tests.support.logd_process import LogdProcess

ROWS = 20_000
MORE = 1500
"""Rows for each worker that is to write a file, whatever those before it have left to write."""


@depth.deep
@pytest.mark.parametrize("at", depth.first(1, [3000, 1, 12_000]))
def test_worker_killed_while_reading(kit, rows, topic, at):
    """Rows below the committed offset are in the log when the worker is killed after `at` lines.

    Offsets that were committed before the acknowledgement would lose the rows in between: neither the killed
    worker nor the next one would have them in its output.
    """
    source = kit.source(rows(ROWS), topic, batch_size="50")
    process = kit.spawn(source)
    kit.wait_until(lambda: kit.committed_line() > at, process)
    kit.kill(process)
    kit.wait_until(lambda: not has_connections(kit.port))  # what it had sent may still be appended

    committed_rows = kit.committed_line() - 1  # the first line is the header
    before = set(kit.numbers(topic))
    assert set(range(committed_rows)) <= before

    kit.finish(source)
    numbers = kit.numbers(topic)
    assert set(numbers) == set(range(ROWS))
    repeated = len(numbers) - ROWS
    assert repeated == len(before) - committed_rows  # only what was acknowledged and not yet committed
    assert kit.committed_line() == ROWS + 1


def numbers_in(path):
    """Field `n` of a whole file; the reader's error for a torn one."""
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        return parquet.read_table(path, partitioning=None)["n"].to_pylist()
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


async def add_rows(bootstrap, topic, numbers):
    """Append rows to the topic in the form that the source connector writes."""
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        for partition in range(3):
            values = {n: json.dumps({"n": str(n), "s": f"row {n}"}) for n in numbers if n % 3 == partition}
            records = [(0, b"%d" % n, value.encode(), ()) for n, value in values.items()]
            await (await producer.send(topic, partition, records))


@depth.sample(1)
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_worker_killed_while_writing_files(kit, rows, topic, tmp_path, suffix):
    """Killed several times between files written and offsets committed: every record is there exactly once.

    Whatever has a file's name is whole, at any moment.
    """
    kit.finish(kit.source(rows(ROWS), topic))
    out = tmp_path / "out"
    sink = kit.sink(out, topic) | {"consumer.override.max.partition.fetch.bytes": "20000"}
    sink |= {"format": "parquet" if suffix == "parquet" else "json"}
    # A dead member's partitions are to be free soon.
    kit.settings |= {"consumer.session.timeout.ms": "3000", "consumer.heartbeat.interval.ms": "200"}

    def files():
        return list(out.glob(f"[!.]*/*.{suffix}"))

    count = ROWS
    for _ in range(depth.times(3)):
        before = len(files())
        asyncio.run(add_rows(kit.bootstrap, topic, range(count, count + MORE)))
        count += MORE
        process = kit.spawn(sink)
        kit.wait_until(lambda before=before: len(files()) > before, process)
        kit.kill(process)
        for path in files():
            numbers_in(path)
    kit.finish(sink)
    assert sorted(int(n) for path in files() for n in numbers_in(path)) == list(range(count))
    assert {path.name for path in out.iterdir()} <= {topic, ".claims"}
    assert all(path.suffix == f".{suffix}" for path in (out / topic).iterdir())


@depth.deep
def test_broker_killed_while_reading(make_kit, rows, topic, tmp_path):
    """Rows keep their order per key while the broker is killed and restarted twice."""
    with LogdProcess(tmp_path / "logd") as logd:
        kit = make_kit(logd.bootstrap)
        path = rows(ROWS)
        path.write_text("n,s\n" + "".join(f"{n},k{n % 7}\n" for n in range(ROWS)))
        source = kit.source(path, topic, key_field="s", batch_size="50")
        source["producer.override.batch.size"] = "2000"
        process = kit.spawn(source, options=("--exit-when-done",))
        for at in (2000, 8000):
            kit.wait_until(lambda at=at: kit.committed_line() > at, process)
            logd.kill()
            logd.start()
        assert process.wait(90) == 0, kit.output.read_text()
        by_key = defaultdict(list)
        for _, key, value in kit.read(topic):
            by_key[key].append(int(json.loads(value)["n"]))
    assert sorted(n for numbers in by_key.values() for n in numbers) == list(range(ROWS))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())

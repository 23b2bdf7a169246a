"""Our client and streams go on rightly in a log that lost its end, Apache Kafka's and logd's alike (KIP-320).

Ten records are read and the broker is killed. The last three are then lost from its disk, and five others are
written from offset 7 on. A reader that went on at offset 10 would miss the first three of the new ones.
All tests share the broker process; each has its own topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kafka_client import BatchFetcher, Client, Consumer, TopicPartition
from kafka_client.errors import LogTruncated
from kafka_client.records import iter_batches
from kafka_client.wire.messages.fetch import FetchRequest
from kafka_client.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from streams import KafkaStreams, StreamsBuilder
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.java import needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

Broker = ApacheKafka | LogdProcess
SECONDS = 300.0
"""Far more than logd needs; Apache Kafka takes several to start, and many on a busy machine."""
READ, LEFT, NEW = 10, 7, 5


@pytest.fixture(scope="module", params=[pytest.param("kafka", marks=needs_kafka), "logd"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp(request.param)
    made = ApacheKafka(folder) if request.param == "kafka" else LogdProcess(folder)
    with made as broker:
        yield broker


@pytest.fixture
def tp(broker: Broker, new_name: Callable[[], str]) -> TopicPartition:
    """With ten records, `old 0` to `old 9`."""
    if not broker.is_running:
        broker.start()  # a test has failed behind its kill
    tp = TopicPartition(create_topic(broker, new_name(), {"retention.ms": "-1"}), 0)
    put(broker, tp, texts("old", READ))
    return tp


def texts(kind: str, count: int) -> list[str]:
    return [f"{kind} {number}" for number in range(count)]


def put(broker: Broker, tp: TopicPartition, values: Iterable[str]) -> None:
    with RawClient(broker.port) as client:
        for value in values:
            while client.produce(tp.topic, [(1, None, value.encode(), ())]).error_code:
                pass  # it has just started


def lose_power(broker: Broker, tp: TopicPartition, *, new: int = NEW) -> None:
    """Remove all but the first records, and write new ones."""
    broker.kill()
    (path,) = (broker.folder / "data" / str(tp)).glob("*.log")
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(sum(header.size for _, header in list(iter_batches(data))[:LEFT]))
    broker.start()
    put(broker, tp, texts("new", new))


async def read(fetcher: BatchFetcher | Consumer, count: int) -> list[str]:
    values: list[str] = []
    async with asyncio.timeout(SECONDS):
        while len(values) < count:
            for fetched in await fetcher.fetch():
                values += [record[3].decode() for record in fetched.records() if record[3] is not None]
    return values


@pytest.fixture(params=["by asking for the epoch's end", "by the fetch alone"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either is enough by itself: the other one is a version the broker does not have."""
    if request.param == "by the fetch alone":
        monkeypatch.setattr(OffsetForLeaderEpochRequest, "VERSIONS", (99, 99))
    else:
        monkeypatch.setattr(FetchRequest, "VERSIONS", (4, 11))


@deep
@pytest.mark.usefixtures("_way")
async def test_a_fetcher_is_told_where_the_logs_part(broker: Broker, tp: TopicPartition) -> None:
    async with Client(broker.bootstrap) as client, BatchFetcher(client) as fetcher:
        fetcher.add(tp, 0)
        assert await read(fetcher, READ) == texts("old", READ)
        await asyncio.to_thread(lose_power, broker, tp)
        with pytest.raises(LogTruncated) as raised:
            await read(fetcher, 1)
        assert (raised.value.offset, raised.value.diverging_offset) == (READ, LEFT)
        fetcher.seek(tp, LEFT)
        assert await read(fetcher, NEW) == texts("new", NEW)


@deep
def test_a_group_goes_on_where_the_logs_part(broker: Broker, tp: TopicPartition) -> None:
    """Groups that were stopped meanwhile learn of the truncation by the epoch of their committed offsets."""

    async def group(count: int) -> list[str]:
        async with (
            Client(broker.bootstrap) as client,
            Consumer(client, f"group-of-{tp.topic}", auto_offset_reset="earliest") as consumer,
        ):
            await consumer.subscribe([tp.topic])
            values = await read(consumer, count)
            await consumer.commit()
            return values

    assert asyncio.run(group(READ)) == texts("old", READ)
    lose_power(broker, tp)
    assert asyncio.run(group(NEW)) == texts("new", NEW)


def application(broker: Broker, tp: TopicPartition, state_dir: Path, values: list[str]) -> KafkaStreams:
    builder = StreamsBuilder(key_serde=bytes, value_serde=str)
    builder.stream(tp.topic).foreach(lambda _, value: values.append(value))
    return KafkaStreams(
        builder.build(),
        application_id=f"app-of-{tp.topic}",
        bootstrap_servers=broker.bootstrap,
        state_dir=str(state_dir),
        commit_interval_ms=20,
    )


@deep
async def test_an_application_goes_on_where_the_logs_part(
    broker: Broker, tp: TopicPartition, tmp_path: Path
) -> None:
    values: list[str] = []
    async with asyncio.timeout(SECONDS), application(broker, tp, tmp_path, values) as app:
        await app.wait_until_caught_up()
        assert values == texts("old", READ)
        await asyncio.to_thread(lose_power, broker, tp)
        while len(values) < READ + NEW:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.01)
        await app.wait_until_caught_up()
        assert values[READ:] == texts("new", NEW)


@deep
@pytest.mark.parametrize("new", [1, NEW], ids=["the log is still shorter", "it is longer"])
def test_an_application_that_was_away_goes_on_there_too(
    broker: Broker, tp: TopicPartition, tmp_path: Path, new: int
) -> None:
    """Positions beyond the log's end do not reset an application.

    Once such a position was taken for a topic that was created again, and all records were counted twice.
    """
    values: list[str] = []

    async def run_once() -> None:
        async with asyncio.timeout(SECONDS), application(broker, tp, tmp_path, values) as app:
            await app.wait_until_caught_up()

    asyncio.run(run_once())
    assert values == texts("old", READ)
    lose_power(broker, tp, new=new)
    asyncio.run(run_once())
    assert values[READ:] == texts("new", new)

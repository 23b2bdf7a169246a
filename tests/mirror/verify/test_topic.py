"""Verification of topics between two brokers: transactions, unreadable records, and the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_client import Admin, Client, TopicPartition, TransactionalProducer
from mirror.verify import Side, Unreadable
from mirror.verify.pace import Pace
from mirror.verify.reading import SideReader
from tests.millstream.invoking import invoke
from tests.mirror.pair import Pair, numbered, produce
from tests.support.damaged_log import damage_batch
from tests.support.logd_process import LogdProcess

NewName = Callable[[], str]


def verify(pair: Pair, topic: str, *options: str, status: int) -> tuple[dict[str, Any], str]:
    """Return the row of the topic's only partition, and what is on stderr."""
    ends = ("--source", pair.dc1, "--target", pair.dc2)
    result = invoke("mirror", "verify", *ends, "--topic", topic, *options, "-o", "json")
    assert result.exit_code == status, result.output
    (row,) = json.loads(result.stdout)
    return row, result.stderr


async def in_transactions(bootstrap: str, topic: str, *parts: tuple[int, int, bool]) -> None:
    """Write numbered records, `count` from `start` on for each part, in a transaction that is committed or
    aborted.
    """
    async with Client(bootstrap) as client, TransactionalProducer(client, topic) as producer:
        for count, start, is_committed in parts:
            producer.begin()
            await producer.send(topic, 0, numbered(count, start))
            await producer.flush()
            await (producer.commit() if is_committed else producer.abort())


async def test_aborted_transactions_count_on_neither_side(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await Pair(pair.dc2, pair.dc1).create(f"dc1.{topic}")
    await in_transactions(pair.dc1, topic, (5, 100, False), (10, 0, True), (3, 200, False))
    await in_transactions(pair.dc2, f"dc1.{topic}", (4, 0, True), (7, 300, False), (6, 4, True))
    comparison = await pair.verify(topic)
    assert (comparison.equal, comparison.records) == (True, 10)
    await in_transactions(pair.dc2, f"dc1.{topic}", (1, 10, True))
    (partition,) = (await pair.verify(topic)).partitions
    assert str(partition.difference) == "record 10: only the target has it, at offset 20"


def test_what_cannot_be_read_is_named_with_its_side(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    whole, short, wrong = new_name(), new_name(), new_name()
    with LogdProcess(tmp_path) as source:
        ends = Pair(source.bootstrap, pair.dc2)

        async def fill() -> None:
            batches = [numbered(5), numbered(5, 5), numbered(5, 10)]
            await ends.create(whole)
            await produce(ends.dc1, whole, {0: batches})
            for name, copied in (
                (whole, batches),
                (short, [batches[0], batches[2]]),
                (wrong, [numbered(5, 1), batches[2]]),
            ):
                await Pair(pair.dc2, "").create(f"dc1.{name}")
                await produce(pair.dc2, f"dc1.{name}", {0: copied})

        asyncio.run(fill())
        source.stop()
        damage_batch(tmp_path / "data", whole, 5, right_crc=False)
        source.start()
        ends = Pair(source.bootstrap, pair.dc2)
        named = f"the source's {whole}-0 cannot be read at offsets 5 to 9: "
        row, errors = verify(ends, f"{whole}:dc1.{whole}", status=6)
        assert (row["equal"], row["source_records"], row["target_records"]) == (None, 10, 15)
        (unreadable,) = row["unreadable"]
        assert unreadable.pop("reason")
        place = {"topic": whole, "partition": 0, "first_offset": 5, "last_offset": 9}
        assert unreadable == {"side": "source", **place}
        assert named in errors
        result = invoke(
            "mirror", "verify", "--source", ends.dc1, "--target", pair.dc2, "--topic", whole, "--alias", "dc1"
        )
        assert f"{whole} and dc1.{whole}: UNKNOWN, 10 records\n" in result.stdout
        assert "; some cannot be read, equal up to record 5\n" in result.stdout
        row, errors = verify(ends, f"{whole}:dc1.{short}", status=6)
        assert (row["equal"], named in errors) == (True, True), "the copy left the batch out"
        row, errors = verify(ends, f"{whole}:dc1.{wrong}", status=7)
        assert row["difference"].startswith("record 0: timestamp, key, value, headers differ")
        assert named in errors
        row, _ = verify(ends, f"{whole}:dc1.{whole}", "--compare", "latest", status=6)
        assert (row["compared_by"], row["equal"]) == ("latest", None), "the batch has the latest of two keys"


async def test_purged_offsets_and_partitions_without_an_answer(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(5), numbered(5, 5)]})
    tp, missing = TopicPartition(topic, 0), TopicPartition(topic, 7)
    async with Client(pair.dc1) as client:
        reader = SideReader(Side.TARGET, client, Pace())
        assert await reader.bounds([tp, missing]) == {tp: (0, 10)}
        (unknown,) = reader.unreadable[7]
        assert str(unknown).startswith(f"the target's {missing} cannot be read: ")
        await Admin(client).delete_records({tp: 3})
        passed: list[int] = []
        reader.on_read = passed.append
        parts = [part async for part in reader.read({tp: (0, 10)})]
        assert [record[0] for _, records, _ in parts for record in records] == list(range(3, 10))
        (purged,) = reader.unreadable[0]
        assert purged == Unreadable(Side.TARGET, tp, 0, 2, purged.reason)
        assert sum(passed) == 10


def test_a_rate_and_a_way_to_compare(pair: Pair, new_name: NewName) -> None:
    topic = new_name()

    async def fill() -> None:
        for ends in (pair, Pair(pair.dc2, pair.dc1)):
            await ends.create(topic, cleanup_policy="compact")
            await produce(ends.dc1, topic, {0: [numbered(10)]})

    asyncio.run(fill())
    row, errors = verify(pair, topic, "--rate", "1000000", status=0)
    assert (row["compared_by"], row["source_records"], row["unreadable"]) == ("latest", 7, [])
    assert errors == "", "there is no bar without a terminal"
    row, _ = verify(pair, topic, "--compare", "records", status=0)
    assert (row["compared_by"], row["source_records"]) == ("records", 10)

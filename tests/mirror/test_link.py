"""A link between two brokers: what arrives, what is refused, where it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.records import Codec, iter_batches
from mirror.errors import (
    ForeignWrite,
    RecordsLost,
    SourceRecreated,
    TargetNotEmpty,
    TargetRecreated,
)
from mirror.link import Link
from tests.mirror.pair import Pair, numbered, produce
from tests.support.depth import deep, sample
from tests.support.logd_process import LogdProcess

NewName = Callable[[], str]


@deep
async def test_every_codec_arrives_as_it_was(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic, len(Codec))
    for codec in Codec:
        await produce(
            pair.dc1,
            topic,
            {codec: [numbered(50), numbered(50, 50)]},
            compression_type=codec.name.lower(),
        )
    assert await pair.copy(topic) == 100 * len(Codec)
    compared = await pair.verify(topic)
    assert compared.equal
    assert [p.target_records for p in compared.partitions] == [100] * len(Codec)
    assert await stored(pair.dc2, f"dc1.{topic}") == await stored(pair.dc1, topic)


async def stored(bootstrap: str, topic: str) -> list[list[tuple[Codec, int, bytes]]]:
    """Codec, count and still compressed records of every batch, by partition."""
    from kafka_client import BatchFetcher

    batches_of = []
    async with Client(bootstrap) as client:
        partitions = (await client.topic(topic)).partitions
        tps = [TopicPartition(topic, p) for p in sorted(partitions)]
        ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
        for tp in tps:
            batches = []
            async with BatchFetcher(client) as fetcher:
                fetcher.add(tp, 0)
                while fetcher.position(tp) < ends[tp].offset:
                    for fetched in await fetcher.fetch():
                        for at, header in iter_batches(fetched.buffer):
                            body = bytes(fetched.buffer[at + 61 : at + header.size])
                            batches.append((header.codec, header.count, body))
            batches_of.append(batches)
    return batches_of


@deep
async def test_odd_records_arrive(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    odd = [
        (5, None, None, ()),
        (4, b"", b"", (("a", None), ("a", b""), ("ü", b"\xff"))),
        (0, None, b"x" * 500_000, ()),
    ]
    await produce(pair.dc1, topic, {0: [odd]})
    assert await pair.copy(topic) == 3
    assert (await pair.verify(topic)).equal


@deep
async def test_a_topic_of_log_append_time_keeps_the_times_its_readers_saw(
    pair: Pair, new_name: NewName
) -> None:
    topic = new_name()
    await pair.create(topic, message_timestamp_type="LogAppendTime")
    await produce(pair.dc1, topic, {0: [numbered(20)]}, compression_type="zstd")
    assert await pair.copy(topic) == 20
    assert (await pair.verify(topic)).equal


@deep
async def test_remote_topics_are_like_the_sources(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic, 3, retention_ms="-1", cleanup_policy="compact")
    await pair.copy(topic)
    async with Client(pair.dc1) as dc1, Client(pair.dc2) as dc2:
        remote = await dc2.topic(f"dc1.{topic}")
        assert remote.partition_count == 3
        configs = await Admin(dc2).describe_configs(f"dc1.{topic}")
        assert (configs["retention.ms"].value, configs["cleanup.policy"].value) == ("-1", "compact")
        await Admin(dc1).create_partitions({topic: 5})
        await Admin(dc1).incremental_alter_configs(topic, {"retention.ms": "86400000"})
        await pair.copy(topic)
        assert (await dc2.topic(f"dc1.{topic}", refresh=True)).partition_count == 5
        assert (await Admin(dc2).describe_configs(f"dc1.{topic}"))["retention.ms"].value == "86400000"
        await Admin(dc1).incremental_alter_configs(topic, {"retention.ms": None, "cleanup.policy": None})
        await pair.copy(topic)
        configs = await Admin(dc2).describe_configs(f"dc1.{topic}")
        assert (configs["retention.ms"].source, configs["cleanup.policy"].value) == (5, "delete")


@sample(1)
@pytest.mark.parametrize("location", ["source", "target"])
async def test_a_second_run_goes_on_where_the_first_ended(
    pair: Pair, new_name: NewName, location: str
) -> None:
    topic = new_name()
    where = {"offset-syncs.topic.location": location}
    await pair.create(topic, 2)
    assert await pair.copy(topic, **where) == 0
    await produce(pair.dc1, topic, {0: [numbered(10), numbered(10, 10)], 1: [numbered(5)]})
    assert await pair.copy(topic, **where) == 25
    assert await pair.copy(topic, **where) == 0
    await produce(pair.dc1, topic, {1: [numbered(7, 5)]})
    assert await pair.copy(topic, **where) == 7
    assert (await pair.verify(topic)).equal


@deep
async def test_lag_is_told_while_it_runs(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(topic)) as link:
        before = link.status()[TopicPartition(topic, 0)]
        assert (before.position, before.lag_records, before.remote) == (0, 10, (f"dc1.{topic}", 0))
        running = asyncio.create_task(link.run())
        async with asyncio.timeout(60):
            while link.status()[TopicPartition(topic, 0)].records < 10:
                await asyncio.wait([running], timeout=0.01)
        after = link.status()[TopicPartition(topic, 0)]
        assert (after.position, after.lag_records, after.lag_seconds) == (10, 0, 0.0)
        link.stop()
        await running


@deep
async def test_a_target_with_records_nobody_accounts_for_is_refused(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    async with Client(pair.dc2) as dc2:
        from kafka_client import NewTopic

        await Admin(dc2).create_topics([NewTopic(f"dc1.{topic}", 1, 1)])
    await produce(pair.dc2, f"dc1.{topic}", {0: [numbered(1)]})
    with pytest.raises(TargetNotEmpty, match=topic):
        await pair.copy(topic)


@deep
async def test_a_copy_made_again_is_not_gone_on_with(pair: Pair, new_name: NewName) -> None:
    """Deleted under a running mirror the copy came back with as many records as before, only others: after a
    restart that was taken for what had been copied."""
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(20)]})
    await pair.copy(topic)
    async with Client(pair.dc2) as client:
        await Admin(client).delete_topics([f"dc1.{topic}"])
        await Admin(client).create_topics([NewTopic(f"dc1.{topic}", 1, 1)])
    await produce(pair.dc2, f"dc1.{topic}", {0: [numbered(20, 20)]})
    with pytest.raises(TargetRecreated, match=f"{topic}-0: the remote topic was deleted"):
        await pair.copy(topic)


@deep
async def test_somebody_elses_record_in_the_target_is_noticed(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(3)]})
    async with Link(pair.link(topic)) as link:
        await produce(pair.dc2, f"dc1.{topic}", {0: [numbered(1)]})
        with pytest.raises(ForeignWrite, match="somebody else"):
            await link.run(until_caught_up=True)


@deep
async def test_a_source_made_again_is_not_copied_behind_the_old_one(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    async with Client(pair.dc1) as dc1:
        await Admin(dc1).delete_topics([topic])
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(20)]})
    with pytest.raises(SourceRecreated, match=topic):
        await pair.copy(topic)


@deep
async def test_records_purged_before_they_were_copied_are_not_skipped_silently(
    pair: Pair, new_name: NewName
) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    await produce(pair.dc1, topic, {0: [numbered(10, 10), numbered(10, 20)]})
    async with Client(pair.dc1) as dc1:
        await Admin(dc1).delete_records({TopicPartition(topic, 0): 20})
    with pytest.raises(RecordsLost, match="offset 10 is wanted"):
        await pair.copy(topic)


@deep
async def test_records_purged_after_they_were_copied_are_no_matter(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    assert await pair.copy(topic) == 10
    await produce(pair.dc1, topic, {0: [numbered(10, 10)]})
    async with Client(pair.dc1) as dc1:
        await Admin(dc1).delete_records({TopicPartition(topic, 0): 10})
    assert await pair.copy(topic) == 10


@deep
async def test_a_difference_is_shown(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(5000)]})
    await pair.copy(topic)
    await produce(pair.dc1, topic, {0: [numbered(2, 5000)]})
    await produce(pair.dc2, f"dc1.{topic}", {0: [numbered(1, 5000), numbered(1, 5001, value=b"other")]})
    (result,) = (await pair.verify(topic)).partitions
    assert not result.equal
    assert result.difference is not None
    assert (result.difference.index, str(result.difference).split(",")[0]) == (
        5001,
        "record 5001: value differ",
    )
    await produce(pair.dc2, f"dc1.{topic}", {0: [numbered(1)]})


@deep
async def test_a_missing_tail_is_shown(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    await pair.copy(topic)
    await produce(pair.dc1, topic, {0: [numbered(1, 10)]})
    compared = await pair.verify(topic)
    assert str(compared.partitions[0].difference) == "record 10: only the source has it, at offset 10"


async def until_copied(link: Link, tp: TopicPartition, records: int, running: asyncio.Task[None]) -> None:
    async with asyncio.timeout(60):
        while link.status()[tp].records < records:
            done, _ = await asyncio.wait([running], timeout=0.01)
            assert not done, running.result()


async def delete(bootstrap: str, topic: str) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).delete_topics([topic])


@sample(1)
@pytest.mark.parametrize("again", [5, 10, 30])
async def test_a_source_made_again_while_it_is_copied_is_noticed(
    pair: Pair, new_name: NewName, again: int
) -> None:
    """Fetching by name, or from whatever topic has the name now, goes on at the old one's offset: the new
    one's first records are left out, the others put behind the old ones. With as many records as were copied
    there is nothing to fetch: the look for new topics notices.
    """
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(topic)) as link:
        link._source.missing_topic_wait_ms = 60_000  # it is back before anybody gives it up
        running = asyncio.create_task(link.run())
        await until_copied(link, TopicPartition(topic, 0), 10, running)
        await delete(pair.dc1, topic)
        await pair.create(topic)
        await produce(pair.dc1, topic, {0: [numbered(again, 1000)]})
        link._refreshed_at = 0.0
        async with asyncio.timeout(60):
            while not link.quarantined:
                await asyncio.wait([running], timeout=0.01)
        quarantined = link.quarantined[TopicPartition(topic, 0)]
        assert quarantined.reason == "SourceRecreated"
        assert "topic id" in str(quarantined.error)
        link.stop()
        await running
    async with Client(pair.dc2) as dc2:
        remote = TopicPartition(f"dc1.{topic}", 0)
        assert (await Admin(dc2).list_offsets({remote: "latest"}))[remote].offset == 10


@deep
async def test_a_deleted_topic_does_not_end_the_others(pair: Pair, new_name: NewName) -> None:
    deleted, remaining = new_name(), new_name()
    for topic in (deleted, remaining):
        await pair.create(topic)
        await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(f"{deleted},{remaining}")) as link:
        link._source.missing_topic_wait_ms = 100
        running = asyncio.create_task(link.run())
        for topic in (deleted, remaining):
            await until_copied(link, TopicPartition(topic, 0), 10, running)
        await delete(pair.dc1, deleted)
        async with asyncio.timeout(60):
            while TopicPartition(deleted, 0) in link.status():
                await asyncio.wait([running], timeout=0.01)
        await produce(pair.dc1, remaining, {0: [numbered(10, 10)]})
        await until_copied(link, TopicPartition(remaining, 0), 20, running)
        link.stop()
        await running
    assert (await pair.verify(remaining)).equal


@deep
async def test_syncs_that_cannot_be_written_end_the_flow(pair: Pair, new_name: NewName) -> None:
    """Failing to write syncs ends the flow: without syncs a restart would not find its place."""
    topic = new_name()
    await pair.create(topic)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    settings = replace(pair.link(topic), emit_offset_syncs_interval_seconds=0)
    async with Link(settings) as link:
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "syncs"))
        link._syncs._note_end(failed)
        with pytest.raises(KafkaError, match="syncs"):
            await link.run(until_caught_up=True)


@deep
async def test_a_stop_does_not_wait_for_a_target_that_is_away(
    pair: Pair, new_name: NewName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror.link.STOP_SECONDS", 0.1)
    monkeypatch.setattr("mirror.source.CLOSE_MS", 100)
    topic = new_name()
    await pair.create(topic)
    with LogdProcess(tmp_path / "target") as target:
        there = Pair(pair.dc1, target.bootstrap)
        async with Link(there.link(topic)) as link:
            running = asyncio.create_task(link.run())
            target.kill()
            await produce(pair.dc1, topic, {0: [numbered(10)]})
            async with asyncio.timeout(60):
                while link.status()[TopicPartition(topic, 0)].lag_records < 10:
                    await asyncio.wait([running], timeout=0.01)
            link.stop()
            await asyncio.wait_for(running, 60)
        target.start()
        assert await there.copy(topic) == 10
        assert (await there.verify(topic)).equal

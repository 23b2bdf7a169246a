"""An application's inputs: it reads committed records only, and goes on at a defined position if its offset
is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, Fetched, TopicPartition
from kafka_client.errors import LogTruncated
from streams import KafkaStreams, StreamsBuilder, StreamsError
from streams.runtime.restore.restore import restore_stores
from streams.runtime.threads.worker import Worker
from streams.state import open_store
from tests.streams.support.running import copy, make_topics, produce, run
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.markers import wait_for_markers
from tests.support.raw_client import RawClient
from tests.support.transaction import TransactionalProducer
from tests.support.waiting import until

NewName = Callable[[str], str]
NUMBER = bytes(8)


def counting(bootstrap: str, name: str, state_dir: Path, reset: Any = None, **settings: Any) -> KafkaStreams:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in", reset=reset).group_by_key().count(store="counts")
    return KafkaStreams(
        builder.build(),
        application_id=name,
        bootstrap_servers=bootstrap,
        state_dir=str(state_dir),
        **{"poll_ms": 20, "commit_interval_ms": 20, **settings},
    )


def counts(app: KafkaStreams) -> dict[str, int]:
    return dict(app.stores("counts")[0].all())  # type: ignore[attr-defined]


# -- transactions


@pytest.mark.parametrize(
    ("settings", "counted"),
    [
        ({}, {"kept": 2, "plain": 1}),
        ({"isolation_level": "read_committed"}, {"kept": 2, "plain": 1}),
        ({"isolation_level": "read_uncommitted"}, {"kept": 2, "plain": 1, "aborted": 3}),
    ],
)
async def test_aborted_transactions_are_not_counted(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, settings: dict[str, Any], counted: dict[str, int]
) -> None:
    """Records of aborted transactions are not counted. A producer that failed and tried again was counted
    twice.
    """
    name = new_name("aborted")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    with RawClient(logd.port) as raw:
        producer, now = TransactionalProducer(raw, name), int(time.time() * 1000)
        producer.send(f"{name}-in", [(now, b"aborted", NUMBER, ())] * 3)
        producer.end(commit=False)
        raw.produce(f"{name}-in", [(now, b"plain", NUMBER, ())])
        producer.send(f"{name}-in", [(now, b"kept", NUMBER, ())] * 2)
        producer.end(commit=True)
        wait_for_markers(raw, f"{name}-in")
    async with counting(logd.bootstrap, name, tmp_path, **settings) as app:
        await app.wait_until_caught_up()
        assert counts(app) == counted


async def test_an_open_transaction_holds_no_other_input_up(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """An input ends at its last stable offset: no record after it is waited for, or counted as lag."""
    name = new_name("open")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    merged = builder.stream(f"{name}-a").merge(builder.stream(f"{name}-b"))
    merged.group_by_key().count(store="counts")
    await make_topics(logd.bootstrap, **{f"{name}-a": 1, f"{name}-b": 1})
    with RawClient(logd.port) as raw:
        producer, now = TransactionalProducer(raw, name), int(time.time() * 1000)
        producer.send(f"{name}-a", [(now, b"open", NUMBER, ())])
        raw.produce(f"{name}-b", [(now + 1, b"plain", NUMBER, ())])
        async with KafkaStreams(
            builder.build(),
            application_id=name,
            bootstrap_servers=logd.bootstrap,
            state_dir=str(tmp_path),
            poll_ms=20,
        ) as app:
            await app.wait_until_caught_up()
            assert counts(app) == {"plain": 1}
            producer.end(commit=True)
            await until(lambda: app.summary()["records_in"] == 2)
            await app.wait_until_caught_up()
            assert counts(app) == {"plain": 1, "open": 1}


async def test_changelogs_are_restored_without_what_was_aborted(logd: LogdProcess, new_name: NewName) -> None:
    """A restore skips aborted records of a changelog that was written exactly once, maybe by an application
    in Java. Exactly once, an open transaction whose member is gone is not waited for, since all records that
    count are committed.
    """
    changelog = TopicPartition(new_name("changelog"), 0)
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").group_by_key().count(store="counts")
    store: Any = open_store(builder.build().stores["counts"], None)
    await make_topics(logd.bootstrap, **{changelog.topic: 1})
    with RawClient(logd.port) as raw:
        producer = TransactionalProducer(raw, changelog.topic)
        for key, commit in ((b"aborted", False), (b"kept", True)):
            producer.send(changelog.topic, [(int(time.time() * 1000), key, NUMBER, ())])
            producer.end(commit=commit)
        wait_for_markers(raw, changelog.topic)
        producer.send(changelog.topic, [(int(time.time() * 1000), b"open", NUMBER, ())])
        worker = Worker()
        async with Client(logd.bootstrap) as client:
            cuts, ends = await restore_stores(
                client,
                {changelog: store},
                {"counts": 3},
                worker=worker,
                clock=lambda: int(time.time() * 1000),
                exactly_once=True,
            )
        worker.close()
        producer.end(commit=False)
    assert dict(store.all()) == {"kept": 0}
    assert (cuts, ends) == ({"counts": 3}, {"counts": 4}), "up to the last marker"


# -- offsets that are gone


@deep
@pytest.mark.parametrize(
    ("reset", "default", "read"),
    [
        ("latest", "earliest", 1),
        ("earliest", "latest", 3),
        (None, "latest", 1),
        (None, "earliest", 3),
        ("latest", "none", 1),
    ],
)
async def test_a_source_goes_on_where_it_says_when_its_offset_is_gone(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, reset: Any, default: Any, read: int
) -> None:
    """A source's own reset policy decides; only the config's `auto.offset.reset` did before."""
    name = new_name("gone")
    tp = TopicPartition(f"{name}-in", 0)
    await make_topics(logd.bootstrap, **{tp.topic: 1})
    await produce(logd.bootstrap, tp.topic, *[(b"a", NUMBER)] * 3)
    settings: dict[str, Any] = {"reset": reset, "auto_offset_reset": "earliest"}
    async with counting(logd.bootstrap, name, tmp_path, **{**settings, "reset": "earliest"}) as app:
        await app.wait_until_caught_up()
    await produce(logd.bootstrap, tp.topic, *[(b"lost", NUMBER)] * 3, *[(b"there", NUMBER)] * 2)
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_records({tp: 6})
    settings["auto_offset_reset"] = default
    async with counting(logd.bootstrap, name, tmp_path, **settings) as app:
        await until(lambda: app.tasks)
        await until(lambda: app._instance.loop.inputs.positions()[tp] >= 6)
        await produce(logd.bootstrap, tp.topic, (b"new", NUMBER))
        await app.wait_until_caught_up()
        assert app.summary()["records_in"] == read


async def test_an_offset_that_is_gone_ends_an_application_that_has_no_reset(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("none")
    tp = TopicPartition(f"{name}-in", 0)
    await make_topics(logd.bootstrap, **{tp.topic: 1})
    await produce(logd.bootstrap, tp.topic, (b"a", NUMBER))
    async with counting(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    await produce(logd.bootstrap, tp.topic, *[(b"lost", NUMBER)] * 3)
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_records({tp: 4})
    with pytest.raises(StreamsError, match=r"offset 1, the log has 4 to 4; auto.offset.reset is none"):
        async with counting(logd.bootstrap, name, tmp_path, auto_offset_reset="none") as app:
            await app.wait_ended()


# -- logs that were truncated


def truncated(tp: TopicPartition, offset: int, diverging_offset: int) -> LogTruncated:
    return LogTruncated(
        message=f"{tp}: the log was truncated, from offset {diverging_offset} on",
        topic=tp.topic,
        partition=tp.partition,
        offset=offset,
        start=0,
        end=5,
        leader_epoch=0,
        diverging_offset=diverging_offset,
    )


class Truncations:
    """Lets fetching find out, once at the given offset, that the log was truncated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tp: TopicPartition) -> None:
        self.at: dict[int, int] = {}
        original = BatchFetcher.fetch

        async def fetch(fetcher: BatchFetcher, **arguments: Any) -> list[Fetched]:
            if tp in fetcher.assignment and (at := fetcher.position(tp)) in self.at:
                raise truncated(tp, at, self.at.pop(at))
            return await original(fetcher, **arguments)

        monkeypatch.setattr(BatchFetcher, "fetch", fetch)


def test_a_truncated_input_is_read_on_from_where_it_parts_from_what_was_read(
    logd: LogdProcess,
    tmp_path: Path,
    new_name: NewName,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = new_name("truncated")
    tp = TopicPartition(f"{name}-in", 0)
    truncations = Truncations(monkeypatch, tp)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{tp.topic: 1})
        await produce(logd.bootstrap, tp.topic, *[(b"a", NUMBER)] * 5)
        async with counting(
            logd.bootstrap, name, tmp_path, auto_offset_reset="latest", reset="earliest"
        ) as app:
            await until(lambda: app.tasks and app.summary()["records_in"] == 5)
            truncations.at[5] = 3
            await until(lambda: app.summary()["records_in"] == 7)
            await app.wait_until_caught_up()
            assert counts(app) == {"a": 7}
            assert app._instance.loop.inputs.positions() == {tp: 5}

    run(case)
    assert "from offset 3 on; going on at 3, what was made of records 3 to 4 stays" in caplog.text


async def test_truncation_ends_an_application_that_has_no_reset(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name("stop")
    tp = TopicPartition(f"{name}-in", 0)
    truncations = Truncations(monkeypatch, tp)
    await make_topics(logd.bootstrap, **{tp.topic: 1})
    await produce(logd.bootstrap, tp.topic, *[(b"a", NUMBER)] * 5)
    async with counting(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    truncations.at[5] = 3
    with pytest.raises(StreamsError, match=r"truncated, from offset 3 on; auto.offset.reset is none"):
        async with counting(logd.bootstrap, name, tmp_path, auto_offset_reset="none") as app:
            await app.wait_ended()


async def test_commits_carry_the_leader_epoch(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """The committed leader epoch shows, at the next start, whether the log is another one."""
    name = new_name("epochs")
    tp = TopicPartition(f"{name}-in", 0)
    await make_topics(logd.bootstrap, **{tp.topic: 1, f"{name}-out": 1})
    await produce(logd.bootstrap, tp.topic, (b"a", NUMBER))
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    async with Client(logd.bootstrap) as client, BatchProducer(client):
        committed = (await Admin(client).list_group_offsets(name))[tp]
    assert (committed.offset, committed.leader_epoch) == (1, 0)

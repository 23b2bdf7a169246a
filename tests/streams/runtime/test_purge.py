"""The story: a stream grouped by another key goes through a repartition topic, which is kept for ever. It
held every record the application ever read, again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from streams import KafkaStreams, StreamsBuilder, TimeWindows, Topology
from streams.runtime.commit.purge import Purge, RepartitionPurge
from tests.streams.queries.test_queries import send
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

COUNT = 50


@pytest.fixture(scope="module", params=["logd", pytest.param("kafka", marks=java.needs_kafka)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        if request.param == "kafka":
            yield stack.enter_context(ApacheKafka(folder)).bootstrap
        else:
            yield stack.enter_context(LogdProcess(folder)).bootstrap


def counts(name: str) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by(lambda key, value: key[:1]).count(store="counts")
    return builder.build()


def repartition(name: str) -> TopicPartition:
    return TopicPartition(f"{name}-counts-repartition", 0)


async def offset(bootstrap: str, tp: TopicPartition, spec: str) -> int:
    async with Client(bootstrap) as client:
        return (await Admin(client).list_offsets({tp: spec}))[tp].offset


async def purged(bootstrap: str, name: str) -> None:
    """Wait until the repartition topic is empty, and not for want of records."""
    tp = repartition(name)
    while not 0 < await offset(bootstrap, tp, "latest") == await offset(bootstrap, tp, "earliest"):
        pass


def counted(app: KafkaStreams) -> dict[str, int]:
    return dict(app.stores("counts")[0].all())  # type: ignore[attr-defined]


@deep
async def test_what_is_committed_is_deleted_and_counted_once(
    bootstrap: str, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never before it is committed, and never of a topic of the user's."""
    name = new_name("purge")
    rows = [(b"a%d" % n if n % 2 else b"b%d" % n, bytes(8)) for n in range(COUNT)]
    original, calls = Admin.delete_records, 0

    async def delete_records(self: Admin, before: Mapping[TopicPartition, int]) -> Any:
        nonlocal calls
        calls += 1
        committed = await self.list_group_offsets(name)
        assert before.keys() <= {repartition(name)}
        assert all(committed[tp].offset >= offset for tp, offset in before.items())
        return await original(self, before)

    await make_topics(bootstrap, **{f"{name}-in": 1})
    monkeypatch.setattr(Admin, "delete_records", delete_records)
    for turn in (1, 2):
        await produce(bootstrap, f"{name}-in", *rows)
        folder = tmp_path / str(turn)  # the second time there is the changelog alone
        settings = {"repartition_purge_interval_ms": 1, "commit_interval_ms": 20}
        async with start(counts(name), bootstrap, name, folder, **settings) as app:
            await app.wait_until_caught_up()
            await purged(bootstrap, name)
            assert counted(app) == {"a": turn * COUNT // 2, "b": turn * COUNT // 2}
    assert await offset(bootstrap, TopicPartition(f"{name}-in", 0), "earliest") == 0
    assert calls


@deep
async def test_what_expired_is_deleted_of_a_changelog(
    bootstrap: str, tmp_path: Path, new_name: NewName
) -> None:
    """A changelog whose expired records are deleted still has all that a restore needs, even if no window is
    left.
    """
    name = new_name("expired")
    builder = StreamsBuilder(key_serde=str, value_serde=bytes)
    grouped = builder.stream(f"{name}-in").group_by_key()
    grouped.windowed_by(TimeWindows(10_000)).count(store="counts")
    changelog = TopicPartition(f"{name}-counts-changelog", 0)
    await make_topics(bootstrap, **{f"{name}-in": 1})
    for turn in (1, 2):
        settings = {"repartition_purge_interval_ms": 1, "commit_interval_ms": 20}
        async with start(builder.build(), bootstrap, name, tmp_path / str(turn), **settings) as app:
            for minute in range(10 * turn, 10 * turn + 10):
                await send(bootstrap, f"{name}-in", ("a", minute * 60_000), ("a", minute * 60_000 + 1))
                await app.wait_until_caught_up()
            while not await offset(bootstrap, changelog, "earliest"):
                pass
            store: Any = app.stores("counts")[0]
            counts = {key.window.start // 60_000: count for key, count in store.all()}
    last = max(counts)
    async with start(builder.build(), bootstrap, name, tmp_path / "nothing") as app:
        await send(bootstrap, f"{name}-in", ("a", last * 60_000 + 2))
        await app.wait_until_caught_up()
        store = app.stores("counts")[0]
        assert {key.window.start // 60_000: count for key, count in store.all()} == {last: 3}
    assert await offset(bootstrap, changelog, "earliest") > 5


def test_a_changelog_that_may_not_be_deleted_from_is_told_of_once(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    """A changelog of an earlier release that refuses deletion is logged once, and others are purged."""
    name = new_name("refused")
    tp, other = TopicPartition(f"{name}-a", 0), TopicPartition(f"{name}-b", 0)

    async def case() -> None:
        async with Client(logd.bootstrap) as client:
            policies = {tp: "compact", other: "compact,delete"}
            topics = [NewTopic(each.topic, 1, 1, {"cleanup.policy": is_}) for each, is_ in policies.items()]
            await Admin(client).create_topics(topics)
            await produce(logd.bootstrap, other.topic, *((b"a", b"") for _ in range(2)))
            purge = Purge(client, "changelogs of windows", interval_ms=0, clock=lambda: 0)
            for before in (0, 1, 2):
                purge.may_go({tp: before, other: before})
                purge.start_if_due()
                while await offset(logd.bootstrap, other, "earliest") < before:
                    pass
            await purge.close()

    with caplog.at_level(logging.WARNING, "streams"):
        run(case)
    (message,) = (record.getMessage() for record in caplog.records if "not purged" in record.getMessage())
    assert message.startswith(f"{tp.topic} is not purged, and grows: POLICY_VIOLATION")
    assert "cleanup.policy=compact,delete" in message


def test_a_purge_that_fails_is_made_up_for(
    logd: LogdProcess,
    tmp_path: Path,
    new_name: NewName,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing new need be committed for that, and the tasks do not notice."""
    name = new_name("fails")
    original = Admin.delete_records
    errors: list[Exception] = [
        KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not yours"),
        RuntimeError("a bug"),
    ]

    async def delete_records(self: Admin, before: Mapping[TopicPartition, int]) -> Any:
        if errors:
            raise errors.pop(0)
        return await original(self, before)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1})
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
        monkeypatch.setattr(Admin, "delete_records", delete_records)
        async with start(
            counts(name), logd.bootstrap, name, tmp_path, repartition_purge_interval_ms=1
        ) as app:
            await app.wait_until_caught_up()
            await purged(logd.bootstrap, name)
            app.check()

    with caplog.at_level(logging.WARNING, "streams"):
        run(case)
    assert "not purged, trying again later: TOPIC_AUTHORIZATION_FAILED" in caplog.text
    assert "RuntimeError: a bug" in caplog.text


def test_one_purge_at_a_time_every_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    tp, other = TopicPartition("app-x-repartition", 0), TopicPartition("in", 0)
    requests: list[dict[TopicPartition, int]] = []
    go_on = asyncio.Event()
    now = 0

    async def delete_records(self: Admin, before: Mapping[TopicPartition, int]) -> Any:
        requests.append(dict(before))
        await go_on.wait()

    async def turn() -> None:
        purge.start_if_due()
        for _ in range(5):
            await asyncio.sleep(0)

    async def case() -> None:
        nonlocal now
        purge.committed({tp: 5, other: 9})
        await turn()
        assert requests == [], "not due yet"
        now = 10
        await turn()
        assert requests == [{tp: 5}]
        purge.committed({tp: 7})
        now = 20
        await turn()
        assert len(requests) == 1, "the first is under way"
        go_on.set()
        await turn()
        await turn()
        assert requests == [{tp: 5}, {tp: 7}]
        purge.committed({tp: 7, other: 10})
        now = 30
        await turn()
        assert len(requests) == 2, "nothing new"
        await purge.close()

    monkeypatch.setattr(Admin, "delete_records", delete_records)
    purge = RepartitionPurge(Client("127.0.0.1:1"), {tp.topic}, interval_ms=10, clock=lambda: now)
    run(case)


async def test_a_repartition_topic_is_read_from_its_start(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Killed after it had written there and before it had read there, with auto.offset.reset latest, the
    application began behind its own records.
    """
    name = new_name("latest")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    for _ in range(2):
        async with start(counts(name), logd.bootstrap, name, tmp_path, auto_offset_reset="latest") as app:
            await app.wait_until_caught_up()
            totals = counted(app)
        if not totals:
            await produce(logd.bootstrap, repartition(name).topic, (b"a", bytes(8)))
    assert totals == {"a": 1}

"""Fetches that wait: what wakes them, and that one's error does not concern the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from logd.api.fetch.fetch_read import FetchRead
from tests.logd.broker.fetch_bench import LONG, Bench, Session, bench, by_partition, turns
from tests.logd.broker.roles import FakeRole

__all__ = ["bench"]

WAITERS = 8


def asking(topic: str = "t", **overrides: int) -> FetchRequest:
    partition = FetchPartition(**{"partition": 0, "partition_max_bytes": 1 << 20, **overrides})
    topic_row = FetchTopic(topic=topic, partitions=[partition])
    return FetchRequest(max_wait_ms=LONG, min_bytes=1, max_bytes=1 << 20, topics=[topic_row])


def test_one_that_fails_does_not_keep_the_others_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits of other requests go on when one fails.

    A waiter's exception ended the round over all of them: the rest waited until their time was up.
    """
    bench.create("t")
    answers: list[list[Any]] = [[] for _ in range(WAITERS)]
    attempt = FetchRead.__call__
    broken: list[FetchRead] = []

    def attempt_or_break(read: FetchRead, final: bool) -> Any:
        if read in broken:
            raise RuntimeError("broken")
        return attempt(read, final)

    monkeypatch.setattr(FetchRead, "__call__", attempt_or_break)

    async def run() -> None:
        fetches = [bench.wait(asking(), answers[number]) for number in range(WAITERS)]
        broken.extend(fetch._attempt for fetch in fetches[::2])  # type: ignore[misc]
        bench.append()
        await turns()

    bench.runner.run(run())
    assert [len(got) for got in answers] == [1] * WAITERS
    assert [str(error) for (error,) in answers[::2]] == ["broken"] * (WAITERS // 2), "its connection is told"
    assert all(by_partition(answer)["t", 0].records for (answer,) in answers[1::2])


def test_waiting_goes_on_after_news_that_are_not_enough(bench: Bench) -> None:
    bench.create("t", 2)
    session, answers = Session(bench), list[Any]()
    session.fetch({("t", 0): 0, ("t", 1): 0})

    async def run() -> None:
        bench.wait(session.request(max_wait_ms=LONG, min_bytes=350), answers)
        for index in (0, 1):
            bench.append("t", index, size=60)
            await turns()
            assert not answers
        bench.append("t", 0, size=60)
        await turns()

    bench.runner.run(run())
    assert {where: bool(row.records) for where, row in by_partition(answers[0]).items()} == {
        ("t", 0): True,
        ("t", 1): True,
    }, "the least bytes are of all partitions together"


def test_one_burst_of_appends_is_looked_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.create("t", 5)
    session, answers, looks = Session(bench), list[Any](), 0
    session.fetch({("t", index): 0 for index in range(5)})
    attempt = FetchRead.__call__

    def count(read: FetchRead, final: bool) -> Any:
        nonlocal looks
        looks += 1
        return attempt(read, final)

    monkeypatch.setattr(FetchRead, "__call__", count)

    async def run() -> None:
        bench.wait(session.request(max_wait_ms=LONG), answers)
        for index in (0, 1, 2, 1, 0):
            bench.append("t", index)
        await turns()

    bench.runner.run(run())
    assert len(by_partition(answers[0])) == 3
    assert looks == 2


def test_records_deleted_in_front_of_a_reader(bench: Bench) -> None:
    bench.create("t")
    for _ in range(3):
        bench.append()
    session, answers = Session(bench), list[Any]()
    session.fetch({("t", 0): 3})
    session.fetch()

    async def run() -> None:
        bench.wait(session.request(max_wait_ms=20), answers)
        bench.partition("t").delete_records_before(3)
        while not answers:
            await turns()

    bench.runner.run(run())
    assert by_partition(answers[0])["t", 0].log_start_offset == 3, "told in the end, though it had no records"


def test_a_session_that_goes_on_elsewhere_lets_its_waiting_request_go(bench: Bench) -> None:
    """Waiting requests end when their session goes on elsewhere.

    The request waited for an append or its timeout, though nobody could use its response.
    """
    bench.create("t")
    session, answers = Session(bench), list[Any]()
    session.fetch({("t", 0): 0})

    async def run() -> None:
        bench.wait(session.request(max_wait_ms=LONG), answers)
        bench.serve(session.request())
        await turns()

    bench.runner.run(run())
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_FETCH_SESSION_EPOCH]


def test_a_session_that_has_to_give_way_while_its_request_waits(bench: Bench) -> None:
    bench.create("t")
    session, answers = Session(bench), list[Any]()
    session.fetch({("t", 0): 0})
    session.fetch()

    async def run() -> None:
        bench.wait(session.request(max_wait_ms=LONG), answers)
        bench.broker.fetch_sessions.close(session.id)
        await turns()

    bench.runner.run(run())
    assert [answer.error_code for answer in answers] == [ErrorCode.FETCH_SESSION_ID_NOT_FOUND]
    assert not bench.partition("t").waiters, "nobody is left behind"


def test_who_hangs_up_leaves_nothing_behind(bench: Bench) -> None:
    bench.create("t")
    session, answers = Session(bench), list[Any]()
    session.fetch({("t", 0): 0})

    async def run() -> None:
        fetch = bench.wait(session.request(max_wait_ms=LONG), answers)
        plain = bench.wait(asking(), answers)
        fetch.cancel()
        plain.cancel()
        assert list(bench.partition("t").waiters) == [session.of_broker.partitions["t", 0]]
        bench.append()
        await turns()

    bench.runner.run(run())
    assert not answers and session.of_broker.waiter is None


@pytest.mark.parametrize("in_session", [False, True])
def test_whoever_waits_hears_at_once_that_another_broker_leads(bench: Bench, in_session: bool) -> None:
    """Requests with a leader epoch are answered at once when another broker leads; others go on reading
    (KIP-392).
    """
    bench.create("t")
    session, answers, unaware = Session(bench), list[Any](), list[Any]()
    session.fetch({("t", 0): 0})
    (partition_of_session,) = session.of_broker.partitions.values()
    partition_of_session.request = partition_of_session.request._replace(current_leader_epoch=0)

    async def run() -> None:
        knowing = asking(current_leader_epoch=0)
        bench.wait(session.request(max_wait_ms=LONG) if in_session else knowing, answers)
        waiting = bench.wait(asking(), unaware)
        partition = bench.partition("t")
        partition.is_leader, partition.leader_epoch = False, 1
        partition.wake_waiters()
        await turns()
        waiting.cancel()

    bench.runner.run(run())
    (answer,) = answers
    assert by_partition(answer)["t", 0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert not unaware


@pytest.mark.parametrize("in_session", [True, False])
def test_followers_wait_for_the_log_end_and_consumers_for_the_high_watermark(
    bench: Bench, in_session: bool
) -> None:
    bench.create("t")
    partition = bench.partition("t")
    partition.take_role(role := FakeRole())
    leading: Any = SimpleNamespace(
        fetches=lambda broker: None, fetched=lambda *fetched: None, throttle=lambda follower: None
    )
    bench.broker.leading = leading

    def request_at(by: Session, offset: int, replica_id: int) -> FetchRequest:
        if in_session:
            return by.request({("t", 0): offset}, max_wait_ms=LONG, replica_id=replica_id)
        request = asking()
        request.replica_id, request.topics[0].partitions[0].fetch_offset = replica_id, offset
        return request

    consumer, follower = Session(bench), Session(bench)
    if in_session:
        consumer.fetch({("t", 0): 0})
        follower.fetch({("t", 0): 0}, replica_id=2)
    read, copied = list[Any](), list[Any]()

    async def run() -> None:
        bench.wait(request_at(consumer, 0, -1), read)
        bench.wait(request_at(follower, 0, 2), copied)
        bench.append()
        await turns()
        assert (len(read), len(copied)) == (0, 1)
        bench.wait(request_at(follower, 1, 2), copied)
        role.high_watermark = 1
        partition.advance_high_watermark()
        await turns()
        assert (len(read), len(copied)) == (1, 1)
        bench.append()
        await turns()

    bench.runner.run(run())
    (first,) = [by_partition(answer)["t", 0] for answer in read]
    assert first.records and first.high_watermark == 1
    assert [by_partition(answer)["t", 0].high_watermark for answer in copied] == [0, 1]
    assert all(by_partition(answer)["t", 0].records for answer in copied)
    partition.take_role(None)
    bench.broker.leading = None

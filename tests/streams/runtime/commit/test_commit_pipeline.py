"""The pipeline of commits, a step at a time: a producer that does what it is told takes the broker's place.

Wherever the process ends, the stores' backends have what is committed, or less, and never more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client import OffsetAndMetadata, TopicPartition
from kafka_client.errors import (
    AbortableTransactionError,
    ErrorCode,
    FatalTransactionError,
    KafkaError,
    RebalanceNeeded,
    TransactionError,
    error_for,
)
from streams.errors import CommitRefused, TaskLost
from streams.runtime.commit import guarantees
from streams.runtime.commit.guarantees import Commit
from streams.runtime.commit.schedule import CommitSchedule
from streams.runtime.loop import _is_retriable
from tests.streams.support.commit_pipeline import (
    ABORTABLE,
    FENCED,
    REBALANCED,
    Application,
    Producer,
    run,
)
from tests.support.waiting import until


def test_records_go_on_being_processed_while_a_commit_is_under_way() -> None:
    """At each step the changes of a commit stay readable, and apart from those of the next commit."""

    async def test(app: Application) -> None:
        await app.process("a", "a", "b")
        await app.begin()
        await app.process("a", "c")
        assert app.counts() == {"a": 3, "b": 1, "c": 1}
        assert app.on_disk() == ({}, None)
        app.producer.acknowledge()
        app.producer.take_offsets()
        await app.process("b")
        assert (app.on_disk(), app.committed()) == (({}, None), (0, None)), "it may still fail"
        app.producer.end_transaction()
        assert app.committed() == (3, 2)
        assert app.on_disk() == ({}, None), "a kill here restores the tail"
        assert await app.committer.finish() == [app.running]
        assert app.on_disk() == ({"a": 2, "b": 1}, 2)
        assert app.counts() == {"a": 3, "b": 2, "c": 1}
        assert app.running.needs_commit and app.transactions.is_open

        await app.begin()
        app.producer.acknowledge()
        app.producer.take_offsets()
        app.producer.end_transaction()
        await app.committer.finish()
        assert app.on_disk() == ({"a": 3, "b": 2, "c": 1}, 6), "the marker at 2 takes an offset"
        assert app.committed() == (6, 6)
        assert not app.running.needs_commit and not app.transactions.is_open
        assert app.broker.transactions_committed == 2

    run(test)


STEPS: list[Callable[[Producer], None]] = [
    lambda producer: None,
    lambda producer: producer.acknowledge(1),
    lambda producer: producer.acknowledge(),
    Producer.take_offsets,
    Producer.end_transaction,
]
"""The steps of a broker in the course of a commit."""


@pytest.mark.parametrize("steps", range(len(STEPS) + 1))
@pytest.mark.parametrize("next_begun", [False, True])
def test_state_on_disk_is_never_ahead_wherever_the_process_ends(steps: int, next_begun: bool) -> None:
    async def test(app: Application) -> None:
        await app.process("a", "b")
        await app.begin()
        for step in STEPS:
            step(app.producer)
        await app.committer.finish()
        before = app.on_disk()
        await app.process("a", "c")
        await app.begin()
        if next_begun:
            await app.process("a", "d")
        for step in STEPS[:steps]:
            step(app.producer)
            assert app.on_disk() == before
        position, offset = app.committed()
        counts, checkpoint = app.on_disk()
        assert checkpoint is not None and offset is not None and checkpoint <= offset
        assert (position, offset) == ((4, 5) if steps == len(STEPS) else (2, 2))
        if steps == len(STEPS):
            await app.committer.finish()
            assert app.on_disk() == ({"a": 2, "b": 1, "c": 1}, 5)
        assert counts == {"a": 1, "b": 1}

    run(test)


@pytest.mark.parametrize("error", [ABORTABLE, REBALANCED, FENCED], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("steps", range(len(STEPS)))
def test_what_was_begun_behind_a_failure_falls_with_it(error: TransactionError, steps: int) -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        for step in STEPS[:steps]:
            step(app.producer)
        await app.process("b")
        assert app.transactions.is_open
        app.producer.fail(error)
        with pytest.raises(type(error)):
            await app.committer.finish()
        with pytest.raises(type(error)):
            await app.process("c")
        await app.committer.abandon()
        assert not app.transactions.is_open, "nobody commits it"
        with pytest.raises(AssertionError):
            await app.transactions.send("out", 0, [])
        assert (app.on_disk(), app.committed()) == (({}, None), (0, None))
        failed = app.producer
        await app.committer.recover()
        if error is FENCED:
            assert failed.calls[-1] == "close" and app.producer.calls == ["start"]
        else:
            assert failed is app.producer and failed.calls[-1] == "abort"
        await app.transactions.send("out", 0, [])
        assert app.producer.calls[-2:] == ["begin", "send"]

    run(test)


def test_what_is_committed_when_the_next_falls_stays_so() -> None:
    """If a user's function raises during a commit, the commit ends before tasks are opened again."""

    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        await app.committer.abandon()
        recovering = asyncio.create_task(app.committer.recover())
        await asyncio.sleep(0)
        assert not recovering.done()
        for step in STEPS:
            step(app.producer)
        await recovering
        assert app.committed() == (1, 1)
        assert "abort" not in app.producer.calls, "nothing was open behind it"

    run(test)


@pytest.mark.parametrize("end", ["committed", "failed", "abandoned"])
def test_the_groups_generation_stays_while_a_commit_is_under_way(end: str) -> None:
    """Delay a rebalance until the commit is over: the group would refuse the commit afterwards."""

    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        await app.process("b")
        app.producer.acknowledge()
        assert app.holds == 1
        if end == "committed":
            app.producer.take_offsets()
            app.producer.end_transaction()
        elif end == "failed":
            app.producer.fail(REBALANCED)
        else:
            await app.committer.abandon()
        await asyncio.sleep(0)
        assert app.holds == 0, "not only when the loop finds the time to finish it"
        await app.committer.abandon()
        assert app.holds == 0

    run(test)


def test_the_group_does_not_wait_for_a_commit_that_takes_too_long() -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        app.committer._hold_max = 0.0
        await app.begin()
        await until(lambda: app.holds == 0)
        assert app.committer.outcome is not None and not app.committer.outcome.done()

    run(test)


def test_a_commit_that_cannot_wait_is_made_between_generations() -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        app.member.is_joining = True
        await app.begin()
        assert app.holds == 0
        app.producer.acknowledge()
        app.producer.take_offsets()
        app.producer.end_transaction()
        assert await app.committer.finish() == [app.running]

    run(test)


def test_one_commit_at_a_time() -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        with pytest.raises(AssertionError, match="one commit"):
            await app.begin()
        assert app.committer.under_way == 1

    run(test)


def test_a_transaction_that_is_open_for_long_is_overdue() -> None:
    async def test(app: Application) -> None:
        assert not app.committer.is_overdue
        await app.transactions.send("out", 0, [])
        app.now = 4999
        assert not app.committer.is_overdue
        app.now = 5000
        assert app.committer.is_overdue
        await app.begin()
        assert not app.committer.is_overdue

    run(test)


def test_what_a_schedule_sends_is_to_be_committed_too() -> None:
    async def test(app: Application) -> None:
        assert not app.running.needs_commit
        app.task._program.written.by_topic["out"].append((7, b"k", b"v", ()))
        await app.output.send(app.running)
        assert app.running.needs_commit
        await app.begin()
        assert not app.running.needs_commit

    run(test)


def test_caches_forget_what_is_written_while_the_next_commit_fills() -> None:
    async def test(app: Application) -> None:
        await app.process("a", "b", "c")
        await app.begin()
        await app.process("c", "d")
        for step in STEPS:
            step(app.producer)
        await app.committer.finish()
        before = app.task.cache_bytes
        app.task.shrink()
        assert 0 < app.task.cache_bytes < before
        assert app.counts() == {"a": 1, "b": 1, "c": 2, "d": 1}

    run(test)


def test_at_least_once_is_pipelined_too() -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        await app.process("a", "b")
        await asyncio.sleep(0)
        assert not app.offset_commits, "nothing is acknowledged"
        app.producer.acknowledge()
        await until(lambda: bool(app.offset_commits))
        assert app.on_disk() == ({}, None)
        app.offset_commits[0].set_result(None)
        await app.committer.finish()
        assert (app.on_disk(), app.committed()) == (({"a": 1}, 1), (1, 1))
        assert app.counts() == {"a": 2, "b": 1}

    run(test, exactly_once=False)


def test_at_least_once_a_strangers_records_are_noticed() -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        app.broker.append(1)
        await app.begin()
        await asyncio.sleep(0)
        app.producer.acknowledge()
        with pytest.raises(TaskLost, match="counts-changelog"):
            await app.committer.finish()
        assert not app.offset_commits
        await app.committer.abandon()

    run(test, exactly_once=False)


def test_at_least_once_offsets_do_not_move_behind_a_restores_back() -> None:
    """Giving up a commit cancels it before it sends offsets, and waits for it afterwards."""

    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        await asyncio.sleep(0)
        await app.committer.abandon()
        app.producer.acknowledge()
        await asyncio.sleep(0)
        assert not app.offset_commits

        await app.begin()
        await asyncio.sleep(0)
        app.producer.acknowledge()
        await until(lambda: bool(app.offset_commits))
        abandoning = asyncio.create_task(app.committer.abandon())
        await asyncio.sleep(0)
        assert not abandoning.done()
        app.offset_commits[0].set_exception(RebalanceNeeded(ErrorCode.ILLEGAL_GENERATION))
        await abandoning
        assert app.committed() == (0, None)

    run(test, exactly_once=False)


def test_a_record_that_is_refused_fails_the_commit() -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        (_, ack), *_ = app.producer.sent
        del app.producer.sent[0]
        ack.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        await asyncio.sleep(0)
        app.producer.acknowledge()
        with pytest.raises(KafkaError):
            await app.committer.finish()
        assert not app.offset_commits
        await app.committer.abandon()

    run(test, exactly_once=False)


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize(
    ("code", "what"),
    [
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, "offset.metadata.max.bytes allows, which is 40"),
        (ErrorCode.INVALID_COMMIT_OFFSET_SIZE, "max.message.bytes of __consumer_offsets"),
    ],
)
def test_a_commit_that_is_too_large_is_refused_for_good(
    exactly_once: bool, code: ErrorCode, what: str
) -> None:
    async def test(app: Application) -> None:
        await app.process("a")
        await app.begin()
        await asyncio.sleep(0)
        app.producer.acknowledge()
        if exactly_once:
            app.producer.fail(FatalTransactionError(code, "TxnOffsetCommit: group 'app', in-0"))
        else:
            await until(lambda: bool(app.offset_commits))
            app.offset_commits[0].set_exception(KafkaError(code, "group 'app': committing in-0"))
        with pytest.raises(CommitRefused, match="task 0_0 cannot be committed") as caught:
            await app.committer.finish()
        assert what in str(caught.value)
        assert not _is_retriable(caught.value)
        await app.committer.abandon()

    run(test, exactly_once=exactly_once)


def test_refusals_that_would_come_again_are_not_retried() -> None:
    """Restoring would only repeat such an error; a failure that a new producer mends is retried."""
    for code in (
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    ):
        for kind in (AbortableTransactionError, FatalTransactionError):
            assert not _is_retriable(kind(code)), code.name
        assert not _is_retriable(error_for(code)), code.name
    for code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.UNKNOWN_PRODUCER_ID):
        assert _is_retriable(FatalTransactionError(code)), code.name


def test_the_offsets_of_many_tasks_are_committed_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are split, since the coordinator limits the size of a request. The offsets of one task stay in
    one request.
    """
    monkeypatch.setattr(guarantees, "PART_BYTES", 1000)

    def offsets(task: int) -> dict[TopicPartition, OffsetAndMetadata]:
        tps = (TopicPartition("in", task), TopicPartition("log", task))
        return {tp: OffsetAndMetadata(1, "x") for tp in tps}

    monkeypatch.setattr(Commit, "by_task", lambda self: ((None, offsets(task)) for task in range(5)))
    parts = [*Commit([], [], [], {}).parts()]
    assert [sorted({tp.partition for tp in part}) for part in parts] == [[0, 1], [2, 3], [4]]
    assert {tp: each for part in parts for tp, each in part.items()} == Commit([], [], [], {}).offsets()


def test_a_commit_that_has_to_be_made_waits_for_the_one_under_way() -> None:
    """A commit that is due, because a transaction was open for too long, waits for the current commit.

    The time may run out between two looks at the clock, if the process stands still in between.
    """

    class Overdue:
        outcome, under_way = SimpleNamespace(done=lambda: False), 1
        has_open, looks = True, 0

        @property
        def is_overdue(self) -> bool:
            self.looks += 1
            return self.looks > 1

        async def begin(self, *_: object) -> None:
            commits.append("another")

    commits: list[str] = []
    parts: Any = {"committer": Overdue(), "output": SimpleNamespace(is_full=False), "purges": None}
    config = SimpleNamespace(statestore_cache_max_bytes=1, commit_every_ms=1, revoke_timeout_ms=1000)
    application: Any = SimpleNamespace(config=config, clock=lambda: 0)
    member: Any = SimpleNamespace(is_joining=False)
    schedule = CommitSchedule(application, member, leader_epoch=lambda tp, offset: 5, **parts)
    asyncio.run(schedule.commit_if_due())
    assert commits == []

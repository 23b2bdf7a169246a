"""Exactly once where transactions fail: fenced, aborted for their age, refused for the member or a record."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic, TransactionalProducer
from kafka_client.group.coordinator import ask_coordinator
from kafka_client.producer.transaction_coordinator import TransactionCoordinator
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from streams import KafkaStreams, State, StreamsBuilder, StreamsError
from streams.runtime.commit.transactions import transactional_id
from tests.faults.streams.audit import read
from tests.streams.support.running import make_topics, produce, run
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

NewName = Callable[[str], str]
NEVER_MS = 3_600_000
"""A commit interval that does not come to its end: what commits is `wait_until_caught_up`."""
EXACTLY_ONCE: dict[str, Any] = {"processing_guarantee": "exactly_once_v2", "poll_ms": 20}


def number(value: int) -> tuple[bytes, bytes]:
    return b"k", value.to_bytes(8, "big")


def counting(
    bootstrap: str,
    name: str,
    state_dir: Path,
    *,
    before: Callable[[int], Any] = lambda value: None,
    **settings: Any,
) -> KafkaStreams:
    """``<name>-in`` to ``<name>-out``, where each value becomes the sum so far."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    numbers = builder.stream(f"{name}-in").peek(lambda key, value: before(value))
    sums = numbers.group_by_key().reduce(lambda sum, value: sum + value, store="sums")
    sums.to_stream().to(f"{name}-sums")
    numbers.to(f"{name}-out")
    return KafkaStreams(
        builder.build(),
        application_id=name,
        bootstrap_servers=bootstrap,
        state_dir=str(state_dir),
        **{**EXACTLY_ONCE, **settings},
    )


async def outcome(bootstrap: str, app: KafkaStreams, name: str) -> tuple[list[int], int]:
    """Return the values that readers of committed records get, and the sum in the store."""
    await app.wait_until_caught_up()
    (store,) = app.stores("sums")
    async with Client(bootstrap) as client:
        (rows,) = await read(client, f"{name}-out", 1)
    return [value for _, value in rows], store.get("k")  # type: ignore[attr-defined]


async def remove(bootstrap: str, group: str, member_id: str) -> None:
    """Have the group give a member up."""
    who = MemberIdentity(member_id=member_id)
    async with Client(bootstrap) as client:
        await ask_coordinator(
            client, group, LeaveGroupRequest(group_id=group, member_id=member_id, members=[who])
        )


def test_a_fenced_producer_is_replaced(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process has its transactional id, by a copied state folder: the tasks are restored."""
    name = new_name("fenced")

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "out", "sums")})
        await produce(logd.bootstrap, f"{name}-in", number(1), number(2))
        app = counting(logd.bootstrap, name, tmp_path)
        async with app, Client(logd.bootstrap) as client:
            assert await outcome(logd.bootstrap, app, name) == ([1, 2], 3)
            id = transactional_id(name, tmp_path / name)
            async with TransactionalProducer(client, id):
                await produce(logd.bootstrap, f"{name}-in", number(4), number(8))
                await until(lambda: "tasks are restored" in caplog.text)
                assert await outcome(logd.bootstrap, app, name) == ([1, 2, 4, 8], 15)
        async with counting(logd.bootstrap, name, tmp_path / "elsewhere") as app:
            assert await outcome(logd.bootstrap, app, name) == ([1, 2, 4, 8], 15)

    with caplog.at_level(logging.WARNING):
        run(case)
    assert "a new producer begins" in caplog.text


@depth.deep
def test_a_transaction_that_the_coordinator_aborts_for_its_age_is_done_again(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    """If a record takes longer than transaction.timeout.ms, the records before it in the transaction are
    processed again.
    """
    name, slept = new_name("aged"), list[int]()

    def sleep(value: int) -> None:
        if value == 2 and not slept:
            slept.append(value)
            time.sleep(3)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "out", "sums")})
        app = counting(
            *(logd.bootstrap, name, tmp_path),
            before=sleep,
            transaction_timeout_ms=1000,
            commit_interval_ms=NEVER_MS,
        )
        async with app:
            await until(lambda: app.state is State.RUNNING)
            await produce(logd.bootstrap, f"{name}-in", number(1))
            await until(lambda: app.summary()["records_in"] == 1)
            await produce(logd.bootstrap, f"{name}-in", number(2), number(4))
            assert await outcome(logd.bootstrap, app, name) == ([1, 2, 4], 7)
        async with counting(logd.bootstrap, name, tmp_path / "elsewhere") as app:
            assert await outcome(logd.bootstrap, app, name) == ([1, 2, 4], 7)

    with caplog.at_level(logging.WARNING):
        run(case)
    assert "tasks are restored" in caplog.text


def test_a_member_that_the_group_has_given_up_commits_nothing(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    """If the instance is no member when it commits offsets, the transaction is aborted and its records are
    processed again.
    """
    name = new_name("removed")

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "out", "sums")})
        app = counting(logd.bootstrap, name, tmp_path, commit_interval_ms=NEVER_MS)
        async with app:
            await until(lambda: app.state is State.RUNNING)
            await produce(logd.bootstrap, f"{name}-in", number(1), number(2))
            await until(lambda: app.summary()["records_in"] == 2)
            await remove(logd.bootstrap, name, app._instance.member.member_id)
            assert await outcome(logd.bootstrap, app, name) == ([1, 2], 3)

    with caplog.at_level(logging.WARNING):
        run(case)
    assert "tasks are restored: ILLEGAL_GENERATION" in caplog.text or "UNKNOWN_MEMBER_ID" in caplog.text


@depth.deep
async def test_a_revoke_is_over_in_time(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the coordinator does not answer, a revoke drops what it cannot commit, and the inputs are read
    again.
    """
    name, answer = new_name("revoked"), asyncio.Event()
    original = TransactionCoordinator.commit_offsets

    async def answered_late(*arguments: Any, **keywords: Any) -> None:
        await answer.wait()
        await original(*arguments, **keywords)

    await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "out", "sums")})
    app = counting(logd.bootstrap, name, tmp_path, transaction_timeout_ms=700)
    async with app:
        await until(lambda: app.state is State.RUNNING)
        monkeypatch.setattr(TransactionCoordinator, "commit_offsets", answered_late)
        await produce(logd.bootstrap, f"{name}-in", number(1))
        await until(lambda: app._instance.loop.statistics()["commits_under_way"] == 1)
        await app._instance.loop.revoked()
        assert not app.tasks
        answer.set()
        await until(lambda: bool(app.tasks))
        assert await outcome(logd.bootstrap, app, name) == ([1], 1)


async def test_a_record_that_only_the_broker_refuses_ends_the_application(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """A record that the broker refuses fails every transaction, so the production handler cannot skip it."""
    name = new_name("refused")
    await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "sums")})
    async with Client(logd.bootstrap) as client:
        small = NewTopic(f"{name}-out", 1, 1, configs={"max.message.bytes": "20"})
        await Admin(client).create_topics([small])
    await produce(logd.bootstrap, f"{name}-in", number(1))
    app = counting(logd.bootstrap, name, tmp_path, production_exception_handler=lambda error: "continue")
    with pytest.raises(StreamsError, match=f"{name}-out"):
        async with app:
            await app.wait_until_caught_up()


def test_the_transactional_id_stays_over_restarts(tmp_path: Path) -> None:
    first = transactional_id("app", tmp_path)
    assert transactional_id("app", tmp_path) == first
    assert first.startswith("app-") and first.endswith("-1")
    (tmp_path / "kafka-streams-process-metadata").write_text("{}")
    assert transactional_id("app", tmp_path) != first


async def test_tasks_are_not_kept_over_a_generation_without_us(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story of the bug: an instance was paused between JoinGroup and SyncGroup, and removed from the
    group. Others ran its tasks. It joined again, got the tasks back and went on from its old positions. The
    output of the others was written twice.
    """
    name = new_name("stale")
    await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "out", "sums")})
    async with counting(logd.bootstrap, name, tmp_path) as app:
        await until(lambda: app.state is State.RUNNING)
        (before,) = app._instance.loop.tasks.values()
        sync, syncs = app._instance.member._place.sync, iter([True])

        async def sync_too_late(joined: Any, assignments: Any) -> bytes:
            if next(syncs, None):
                await remove(logd.bootstrap, name, app._instance.member.member_id)
            return await sync(joined, assignments)

        monkeypatch.setattr(app._instance.member._place, "sync", sync_too_late)
        app._instance.member.request_rejoin()
        await until(lambda: [*app._instance.loop.tasks.values()] not in ([], [before]))
        await produce(logd.bootstrap, f"{name}-in", number(1))
        assert await outcome(logd.bootstrap, app, name) == ([1], 1)

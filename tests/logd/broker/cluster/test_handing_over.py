"""Time limits of a controlled shutdown."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.wire.private.broker_report import BrokerReportResponse, ReportedTopic
from logd.broker.cluster import controlled_shutdown
from logd.broker.cluster.controlled_shutdown import ControlledShutdown
from logd.config.load import from_properties

BACKOFF_MS = 20
BACKOFF_S = BACKOFF_MS / 1000


class Member:
    """A cluster member in controlled shutdown. Its controller answers after some time, or never (None)."""

    def __init__(self, answers_after_s: float | None, remaining: int = 0) -> None:
        self.node_id, self.epoch, self.controller_id = 1, 1, 2
        settings = SimpleNamespace(session_timeout_ms=1000)
        self.session = SimpleNamespace(settings=settings, connected=self._connected)
        self.requests = 0
        self._answers_after_s = answers_after_s
        self._remaining = remaining

    async def _connected(self) -> None: ...

    async def others_stay(self) -> bool:
        return True

    async def stand_down(self) -> None: ...

    async def say_leaving(self) -> None: ...

    async def ask_controller(self, message: Any) -> BrokerReportResponse:
        self.requests += 1
        if self._answers_after_s is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(self._answers_after_s)
        remaining = [ReportedTopic(name="t", partitions=list(range(self._remaining)))]
        return BrokerReportResponse(remaining=remaining)


def _hand_over(member: Any) -> None:
    config = from_properties(
        {
            "log.dirs": "/nowhere",
            "controlled.shutdown.max.retries": "1",
            "controlled.shutdown.retry.backoff.ms": str(BACKOFF_MS),
        }
    ).config
    leading: Any = SimpleNamespace(led={})

    async def run() -> None:
        async with asyncio.timeout(60):
            await ControlledShutdown(member, leading, config).run()

    asyncio.run(run())


def _gave_up(caplog: pytest.LogCaptureFixture) -> bool:
    return any("max.retries are over" in record.message for record in caplog.records)


def test_waiting_for_an_answer_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "logd.cluster"):
        _hand_over(Member(answers_after_s=3 * BACKOFF_S))
    assert not _gave_up(caplog)


def test_answers_are_not_waited_for_without_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controlled_shutdown, "HANGING_SESSIONS", 0.02)
    with caplog.at_level(logging.INFO, "logd.cluster"):
        _hand_over(Member(answers_after_s=None))
    assert _gave_up(caplog)


def test_a_mistake_does_not_keep_a_broker_from_closing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mistaken(self: Member) -> bool:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Member, "others_stay", mistaken)
    _hand_over(Member(answers_after_s=0))
    assert "handing over: unexpected RuntimeError('a mistake')" in caplog.text


def test_what_nobody_else_can_lead_counts(caplog: pytest.LogCaptureFixture) -> None:
    member = Member(answers_after_s=0, remaining=1)
    with caplog.at_level(logging.INFO, "logd.cluster"):
        _hand_over(member)
    assert _gave_up(caplog) and member.requests

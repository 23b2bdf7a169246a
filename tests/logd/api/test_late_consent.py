"""A transactional batch that waits for its coordinator's consent, while its partition gets another leader.

The simulation of clusters found the bug: a follower appended the batch all the same, at an offset where the
leader's log had another record. The follower acknowledged the batch once that offset was committed.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.api.produce.waiting_batch import WaitingBatch
from logd.broker.partition.admission import NotYetAdmitted


class Topic:
    """A topic whose partition this broker leads for the first `times` look-ups."""

    def __init__(self, times: int) -> None:
        self.led: Any = SimpleNamespace(index=0)
        self._times = times

    def partition(self, index: int) -> Any:
        self._times -= 1
        if self._times < 0:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "broker 2 leads it")
        return self.led


async def appended(topic: Any, *, partition: Any = None, asked_again: bool = False) -> list[str]:
    """Return the log after the coordinator has consented."""
    loop = asyncio.get_running_loop()
    consent, second = loop.create_future(), loop.create_future()
    log: list[str] = []
    more = [second] if asked_again else []

    def append() -> Any:
        if more:
            raise NotYetAdmitted(more.pop())
        log.append("batch")

    batch = WaitingBatch(
        [], 0, topic, partition or topic.led, memoryview(b""), 0, append, NotYetAdmitted(consent)
    )
    task = asyncio.ensure_future(batch.appended(cast("Any", None)))
    for future in [consent, second][: 1 + asked_again]:
        await asyncio.sleep(0)
        assert not log
        future.set_result(None)
    await task
    return log


def test_led_here_still() -> None:
    assert asyncio.run(appended(Topic(1))) == ["batch"]
    assert asyncio.run(appended(Topic(2), asked_again=True)) == ["batch"]


@pytest.mark.parametrize("asked_again", [False, True])
def test_led_elsewhere_meanwhile(asked_again: bool) -> None:
    with pytest.raises(KafkaError) as refused:
        asyncio.run(appended(Topic(int(asked_again)), asked_again=asked_again))
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_opened_anew_meanwhile() -> None:
    with pytest.raises(KafkaError) as refused:
        asyncio.run(appended(Topic(1), partition=SimpleNamespace(index=0)))
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

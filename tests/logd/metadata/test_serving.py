"""The controller at work: one decision after the other, written before it holds, and none after a refusal."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from kafka_client.errors import ErrorCode, Fenced, KafkaError
from logd.metadata.controller.core import Controller
from logd.metadata.controller.placement import Start
from logd.metadata.controller.topics import NewTopic
from logd.metadata.image import BrokerImage, Change, ClusterImage
from logd.metadata.journal_store import JournalStore
from logd.metadata.serving import ServingController
from logd.storage.disk import PosixDisk

P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Store:
    """A store that writes while `open` is set, and then raises `failure` if there is one."""

    def __init__(self) -> None:
        self.written: list[list[Change]] = []
        self.failure: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.writing = asyncio.Event()

    async def write(self, changes: list[Change]) -> None:
        self.writing.set()
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        self.written.append(changes)


class Stage:
    def __init__(self) -> None:
        self.store = Store()
        self.published: list[list[Change]] = []
        self.resigned = 0
        image = ClusterImage.of([BrokerImage(id=1, epoch=1).as_change()])
        self.serving = ServingController(
            Controller(image, epoch=7), self.store, publish=self.published.append, resigned=self._resign
        )

    def _resign(self) -> None:
        self.resigned += 1

    @property
    def topics(self) -> list[str]:
        return list(self.serving.controller.image.topics)

    async def create(self, name: str) -> str:
        new = NewTopic(name=name, topic_id=name.encode().ljust(16), start=Start(0, 0))
        decision = await self.serving.do(lambda controller: controller.create_topic(new))
        return decision.answer.name


@in_loop
async def test_what_is_written_is_applied_and_published_in_order() -> None:
    stage = Stage()
    stage.store.open.clear()
    creating = [asyncio.create_task(stage.create(name)) for name in ("a", "b", "a")]
    await stage.store.writing.wait()
    assert (stage.topics, stage.published) == ([], [])
    stage.store.open.set()
    answers = await asyncio.gather(*creating, return_exceptions=True)
    assert answers[:2] == ["a", "b"]
    assert isinstance(answers[2], KafkaError)  # decided on the image that has the first
    assert answers[2].code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert stage.published == stage.store.written


@in_loop
async def test_nothing_is_written_of_what_changes_nothing_or_is_only_asked() -> None:
    stage = Stage()
    new = NewTopic(name="t", topic_id=b"t" * 16, start=Start(0, 0))
    decision = await stage.serving.do(lambda c: c.create_topic(new), validate_only=True)
    await stage.serving.do(lambda c: c.rebalance_leaders())
    assert decision.answer.name == "t"
    assert (stage.store.written, stage.topics, stage.published) == ([], [], [])


@in_loop
async def test_a_failed_write_changes_nothing_and_the_next_one_may_do() -> None:
    stage = Stage()
    stage.store.failure = OSError(28, "No space left on device")
    with pytest.raises(KafkaError, match="No space left"):
        await stage.create("a")
    assert (stage.topics, stage.resigned) == ([], 0)
    stage.store.failure = None
    assert await stage.create("a") == "a"


@pytest.mark.parametrize(
    "failure",
    [Fenced(ErrorCode.STALE_CONTROLLER_EPOCH, "epoch 8 is controller"), RuntimeError("connection lost")],
)
@in_loop
async def test_a_refused_write_makes_it_resign(failure: Exception) -> None:
    """Writes that wait for a refused one are refused as well, and their requests are not decided."""
    stage = Stage()
    stage.store.failure = failure
    stage.store.open.clear()
    creating = [asyncio.create_task(stage.create(name)) for name in ("a", "b")]
    await stage.store.writing.wait()
    stage.store.open.set()
    for answer in await asyncio.gather(*creating, return_exceptions=True):
        assert isinstance(answer, KafkaError)
        assert answer.code == ErrorCode.NOT_CONTROLLER
    assert not stage.serving.is_active
    assert (stage.topics, stage.published, stage.resigned) == ([], [], 1)


@in_loop
async def test_who_stops_waiting_stops_nothing() -> None:
    stage = Stage()
    stage.store.open.clear()
    creating = asyncio.create_task(stage.create("a"))
    await stage.store.writing.wait()
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    stage.store.open.set()
    assert await stage.create("b") == "b"
    assert stage.topics == ["a", "b"]


@in_loop
async def test_the_journal_serves_as_a_store(tmp_path: Path) -> None:
    store = JournalStore(tmp_path, PosixDisk())
    image = store.load()
    serving = ServingController(
        Controller(image, epoch=1), store, publish=lambda _: None, resigned=lambda: None
    )
    await serving.do(lambda c: c.change_brokers(arrived=[BrokerImage(id=1, epoch=1)]))
    new = NewTopic(name="t", topic_id=b"t" * 16, start=Start(0, 0), partitions=2)
    await serving.do(lambda c: c.create_topic(new))
    store.close()
    again = JournalStore(tmp_path, PosixDisk())
    assert again.load().as_changes() == image.as_changes()
    again.close()

"""Stores are opened and closed beside the event loop: RocksDB reads and writes files for that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams import KafkaStreams, Processor, Record, State, StreamsBuilder
from streams.runtime import opener
from streams.runtime.folder import StateFolder
from streams.serdes import Long, String
from streams.state import CachedStore, StoreSpec
from streams.state.rocks import RocksBackend
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

Open = Callable[[StoreSpec, Path | None], CachedStore]
PARTITIONS = 2


def counts(logd: LogdProcess, name: str, state_dir: Path) -> KafkaStreams:
    """Return an application of two tasks with a store each."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().count(store="counts")
    return start(builder.build(), logd.bootstrap, name, state_dir)


def test_stores_are_opened_and_closed_in_threads(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name("threads")
    opened_in: list[str] = []
    closed_in: list[str] = []
    make, close = RocksBackend.__init__, RocksBackend.close

    def noting_make(backend: RocksBackend, *args: Any, **options: Any) -> None:
        opened_in.append(threading.current_thread().name)
        make(backend, *args, **options)

    def noting_close(backend: RocksBackend) -> None:
        closed_in.append(threading.current_thread().name)
        close(backend)

    monkeypatch.setattr(RocksBackend, "__init__", noting_make)
    monkeypatch.setattr(RocksBackend, "close", noting_close)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS})
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
        async with counts(logd, name, tmp_path) as app:
            await app.wait_until_caught_up()
            assert len(app.tasks) == PARTITIONS

    run(case)
    assert len(opened_in) >= PARTITIONS
    assert len(closed_in) == len(opened_in)
    assert all(thread.startswith("streams-restorer") for thread in opened_in)
    assert all(thread.startswith("streams-worker") for thread in closed_in)


def test_a_store_that_opens_while_its_task_is_taken_away_is_closed(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it any more, and an open database keeps its folder locked."""
    name = new_name("revoked")
    original: Open = opener.open_store
    is_open, go_on = threading.Event(), threading.Event()
    opened: list[CachedStore] = []

    def slow_open(spec: StoreSpec, folder: Path | None, *memory: Any) -> CachedStore:
        opened.append(original(spec, folder))
        is_open.set()
        assert go_on.wait(30)
        return opened[-1]

    monkeypatch.setattr(opener, "open_store", slow_open)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS})
        app = counts(logd, name, tmp_path)
        await app.start()
        closing: asyncio.Task[None] | None = None
        try:
            await until(is_open.is_set)
            closing = asyncio.create_task(app.close())
            await until(lambda: app.state is State.PENDING_SHUTDOWN)
            await asyncio.sleep(0)
        finally:
            go_on.set()
            await (closing or app.close())
        assert app.state is State.NOT_RUNNING

    run(case)
    assert 1 <= len(opened) <= PARTITIONS
    databases = list((tmp_path / name).glob("0_*/rocksdb/counts"))
    assert len(databases) == len(opened)
    for database in databases:
        RocksBackend(database).close()


class Ungrateful(Processor[str, int]):
    """Raises when its task is closed."""

    def process(self, record: Record[str, int]) -> None:
        pass

    def close(self) -> None:
        raise RuntimeError("not yet")


def test_a_processor_that_fails_at_its_close_leaves_nothing_open(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Stores stayed open then, and the state folder locked."""
    name = new_name("ungrateful")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.add_store(StoreSpec(name="mine", kind="key_value", key_serde=String(), value_serde=Long()))
    builder.stream(f"{name}-in").process(Ungrateful, stores=["mine"])

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS})
        app = start(builder.build(), logd.bootstrap, name, tmp_path)
        await app.start()
        try:
            await app.wait_until_caught_up()
        finally:
            with pytest.raises(RuntimeError, match="not yet"):
                await app.close()
        assert app.state is State.NOT_RUNNING

    run(case)
    StateFolder(str(tmp_path), name).close()
    for partition in range(PARTITIONS):
        RocksBackend(tmp_path / name / f"0_{partition}" / "rocksdb" / "mine").close()

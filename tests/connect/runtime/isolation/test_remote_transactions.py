"""A task process's requests about its transactions, and the worker's answers, over encoded messages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from connect.errors import ConnectError
from connect.runtime.isolation.messages import LENGTH_BYTES, encoded, from_task, to_task
from connect.runtime.isolation.remote_transactions import RemoteTransactions
from connect.runtime.isolation.transaction_answers import TransactionAnswers

KEY = b'["c",{"p":1}]'


class Store:
    """The worker's store: it spells each key with a space before it, and has two partitions."""

    primary_name = "own"

    def __init__(self) -> None:
        self.notes: list[Any] = []

    async def as_written(self, offsets: Mapping[bytes, bytes | None]) -> Any:
        parts: dict[int, list[tuple[bytes, bytes | None]]] = {}
        for index, (key, value) in enumerate(offsets.items()):
            parts.setdefault(index % 2, []).append((b" " + key, value))
        return parts

    async def note_committed(
        self, offsets: Any, parts: Mapping[int, Sequence[Any]], firsts: Mapping[int, int]
    ) -> None:
        self.notes.append((dict(offsets), {n: list(part) for n, part in parts.items()}, dict(firsts)))


class Fencing:
    """Fencing of generation 7; it refuses the task of another one."""

    def transactional_id(self, connector: str, task: int) -> str:
        return f"g-{connector}-{task}"

    async def fence(self, connector: str) -> int | None:
        return 7

    async def check(self, connector: str, task: int, generation: int | None) -> None:
        if generation != 7:
            raise ConnectError(f"{connector}-{task} is of generation {generation}")


class Pipe:
    """A task's process and its worker; the answers come in turns of the loop."""

    def __init__(self) -> None:
        self.store = Store()
        store: Any = self.store
        self.answers = TransactionAnswers("c", 3, store, Fencing())
        self.remote = RemoteTransactions(self._send, self.answers.spec())
        self._tasks: set[asyncio.Task[None]] = set()

    def _send(self, message: Any) -> None:
        task = asyncio.create_task(self._answer(from_task(encoded(message)[LENGTH_BYTES:])))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Any) -> None:
        answer: Any = to_task(encoded(await self.answers.to(message))[LENGTH_BYTES:])
        self.remote.take(answer)


async def test_the_names_are_the_workers():
    pipe = Pipe()
    assert pipe.remote.transactional_id("c", 3) == "g-c-3"
    assert pipe.remote.primary_name == "own"


async def test_the_worker_fences_and_checks():
    pipe = Pipe()
    generation = await pipe.remote.fence("c")
    assert generation == 7
    await pipe.remote.check("c", 3, generation)
    with pytest.raises(ConnectError, match="c-3 is of generation None"):
        await pipe.remote.check("c", 3, None)


async def test_the_worker_spells_offsets_and_notes_those_that_are_committed():
    pipe = Pipe()
    offsets = {KEY: b'{"n":1}', b'["c",{"p":2}]': b'{"n":2}', b'["c",{"p":3}]': b'{"n":3}'}
    parts = await pipe.remote.as_written(offsets)
    assert {n: list(map(tuple, part)) for n, part in parts.items()} == await pipe.store.as_written(offsets)
    await pipe.remote.note_committed(offsets, parts, {0: 40})
    assert pipe.store.notes == [(offsets, await pipe.store.as_written(offsets), {0: 40})]
    assert pipe.remote.get(KEY) == b'{"n":1}'


async def test_an_answer_to_a_cancelled_request_is_dropped():
    pipe = Pipe()
    asking = asyncio.ensure_future(pipe.remote.fence("c"))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    assert await pipe.remote.fence("c") == 7

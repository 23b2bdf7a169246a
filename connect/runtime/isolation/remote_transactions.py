"""RemoteTransactions: a task process's way to its worker for what a transaction needs beside the producer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from connect.errors import ConnectError
from connect.runtime.isolation.messages import (
    CheckTask,
    Fence,
    FromTask,
    Granted,
    NoteCommitted,
    OffsetsPut,
    OffsetsSpelled,
    Refused,
    SpellOffsets,
    StoredOffsets,
    TransactionSpec,
)
from connect.runtime.isolation.remote_offsets import Answer, RemoteOffsets, parts
from connect.stores.offset_keys import normal_form

Pair = tuple[bytes, bytes | None]


class RemoteTransactions(RemoteOffsets):
    """Offsets and fencing of an exactly-once task; `take` takes the worker's answers, on the loop."""

    def __init__(self, send: Callable[[FromTask], None], spec: TransactionSpec) -> None:
        super().__init__(send)
        self._spec = spec
        self._answered: dict[int, asyncio.Future[OffsetsSpelled | Granted]] = {}

    # --- TransactionalOffsets ---

    @property
    def primary_name(self) -> str:
        """The name of the topic that has the offsets in transactions."""
        return self._spec.offsets_topic

    async def as_written(self, offsets: Mapping[bytes, bytes | None]) -> dict[int, list[Pair]]:
        """Return the records that store these offsets, by the topic's partition. Raises ConnectError."""
        spelled: dict[int, list[Pair]] = {}
        for part in parts(offsets):
            answer = await self._request(partial(SpellOffsets, offsets=part))
            assert isinstance(answer, OffsetsSpelled)
            for partition, pairs in answer.parts.items():
                spelled.setdefault(partition, []).extend(pairs)
        return spelled

    async def note_committed(
        self,
        offsets: Mapping[bytes, bytes],
        parts: Mapping[int, Sequence[Pair]],
        firsts: Mapping[int, int],
    ) -> None:
        """Take note of a committed transaction's offsets, here and in the worker. Raises ConnectError."""
        self._offsets.update({normal_form(key): value for key, value in offsets.items()})
        await self._request(
            lambda number: NoteCommitted(number, dict(offsets), {p: list(parts[p]) for p in parts}, firsts)
        )

    # --- TaskFencing ---

    def transactional_id(self, connector: str, task: int) -> str:
        """Return the transactional id of the process's task."""
        return self._spec.transactional_id

    async def fence(self, connector: str) -> int | None:
        """Return the generation of plans once no task of an older one can write. Raises ConnectError."""
        answer = await self._request(Fence)
        assert isinstance(answer, Granted)
        return answer.generation

    async def check(self, connector: str, task: int, generation: int | None) -> None:
        """Return if the task is still the worker's, by the newest configs. Raises ConnectError."""
        await self._request(partial(CheckTask, generation=generation))

    # --- answers ---

    def take(self, answer: Answer) -> None:
        """Take an answer of the worker. Answers to requests that were cancelled are dropped."""
        if isinstance(answer, (StoredOffsets, OffsetsPut)):
            super().take(answer)
            return
        waiting = self._answered.get(answer.request)
        if waiting is None or waiting.done():
            return
        if isinstance(answer, Refused):
            waiting.set_exception(ConnectError(answer.error))
        else:
            waiting.set_result(answer)

    async def _request(self, request: Callable[[int], Any]) -> OffsetsSpelled | Granted:
        number = next(self._numbers)
        self._answered[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(request(number))
            return await self._answered[number]
        finally:
            del self._answered[number]

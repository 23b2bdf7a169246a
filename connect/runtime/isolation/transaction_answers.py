"""TransactionAnswers: the worker's part in the transactions of a task in a process of its own.

The process has the transactional producer. The worker fences older tasks, knows how the offset topic spells
keys, and keeps the committed offsets.
"""

from __future__ import annotations

from connect.runtime.exactly_once_task import TaskFencing, TransactionalOffsets
from connect.runtime.isolation.messages import (
    CheckTask,
    Fence,
    Granted,
    NoteCommitted,
    OffsetsSpelled,
    Refused,
    SpellOffsets,
    TransactionRequest,
    TransactionSpec,
)


class TransactionAnswers:
    """The answers to one task's requests about its transactions."""

    def __init__(
        self, connector: str, task_id: int, store: TransactionalOffsets, fencing: TaskFencing
    ) -> None:
        self._connector = connector
        self._task_id = task_id
        self._store = store
        self._fencing = fencing

    def spec(self) -> TransactionSpec:
        """Return what the process has to know from its start on."""
        return TransactionSpec(
            transactional_id=self._fencing.transactional_id(self._connector, self._task_id),
            offsets_topic=self._store.primary_name,
        )

    async def to(self, message: TransactionRequest) -> OffsetsSpelled | Granted | Refused:
        """Return the answer to a request; an error is in the answer."""
        try:
            match message:
                case Fence(request):
                    return Granted(request, await self._fencing.fence(self._connector))
                case CheckTask(request, generation):
                    await self._fencing.check(self._connector, self._task_id, generation)
                case SpellOffsets(request, offsets):
                    return OffsetsSpelled(request, await self._store.as_written(offsets))
                case NoteCommitted(request, offsets, parts, firsts):
                    await self._store.note_committed(offsets, parts, firsts)
        except Exception as e:
            return Refused(message.request, str(e) or repr(e))
        return Granted(message.request, None)

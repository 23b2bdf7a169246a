"""ExactlyOnceBatchSourceTask: whole record batches and their source offsets in one transaction (KIP-618).

The producer writes its id, epoch and sequence, and the transactional bit, into the header of each batch.
Everything else in the batch stays as it was polled.
"""

from __future__ import annotations

from collections.abc import Callable

from connect.api.batch_source import BatchSourceTask
from connect.api.source import SourceTask
from connect.runtime.batch_source_task import WorkerBatchSourceTask
from connect.runtime.exactly_once_task import ExactlyOnceSourceTask, TaskFencing, TransactionalOffsets
from connect.runtime.task import TaskSetting


class ExactlyOnceBatchSourceTask(ExactlyOnceSourceTask, WorkerBatchSourceTask):
    """A worker's task that runs a `BatchSourceTask` with transactions."""


def exactly_once_task(
    setting: TaskSetting,
    task: SourceTask | BatchSourceTask,
    store: TransactionalOffsets,
    fencing: TaskFencing,
    *,
    on_change: Callable[[], None],
) -> ExactlyOnceSourceTask:
    """Return the worker's task that runs a plugin's source task with transactions."""
    made = ExactlyOnceBatchSourceTask if isinstance(task, BatchSourceTask) else ExactlyOnceSourceTask
    return made(setting, task, store, fencing, on_change=on_change)

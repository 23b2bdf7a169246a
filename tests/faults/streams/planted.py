"""A bug to be found, state on the disk that is ahead of the transaction, and how to see it there."""

from __future__ import annotations

from typing import Any

from streams.runtime.task.task import Flush, Task
from streams.state.cache import join
from streams.state.rocks import RocksBackend

FLUSH, WRITE = Task.flush, RocksBackend.write


def written_before_the_commit(task: Task) -> Flush:
    """Write drained changes at once, with the last commit's checkpoint, in place of `Task.flush`."""
    flush = FLUSH(task)
    for store in task.stores.values():
        changes = store.pending.items()
        rows = [(key, None if data is None else join(data, time)) for key, (data, time) in changes]
        store.backend.write(rows, store.backend.checkpoint)
    return flush


def flush_each_write(store: str) -> None:
    """Have the disk show at once what is written to the stores of that name."""

    def write(backend: RocksBackend, *arguments: Any, **keywords: Any) -> None:
        WRITE(backend, *arguments, **keywords)
        if backend._path.name == store:
            backend._db.flush(True)  # of one family; RocksDB itself flushes both at once
            backend._checkpoints.flush(True)

    RocksBackend.write = write  # type: ignore[method-assign]

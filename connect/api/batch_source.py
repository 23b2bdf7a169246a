"""A source of whole record batches: they go to the log as they are, compressed, and no record is decoded.

Copies from another Kafka cluster, or from its files, are such sources. Offsets, producer id, epoch and
sequence in a batch's header are those of the worker's producer; timestamps, keys, values, headers and codec
stay. No converter and no transform sees the records, so the worker refuses settings for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from connect.api.calls import MaybeAwaitable
from connect.api.raw_batch import RawBatch
from connect.api.source_context import SourceTaskContext


class BatchSourceTask:
    """Reads whole record batches. Subclass it and set it as `SourceConnector.task_class`.

    Calls and threads are those of a `SourceTask`.
    """

    context: SourceTaskContext

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Open the source and go to the position in `self.context.offsets`."""

    def poll(self) -> MaybeAwaitable[Sequence[RawBatch] | None]:
        """Return the next batches; None or empty if there are none now (the worker polls again soon).

        Batches of a partition are written in this order. The worker polls again once the producer has room
        for all of them (`buffer.memory` bytes, 32 MiB), so return a few MB at most.
        """
        raise NotImplementedError

    def commit_batch(self, batch: RawBatch, offset: int | None) -> MaybeAwaitable[None]:
        """Take note that a polled batch is in the log, its first record at `offset`.

        Called between polls, for each batch in the order of acknowledgement. `offset` is None if compaction
        had left no record in the batch, if a retry found the batch in the log and its offset forgotten, or if
        the task has had its transaction aborted.
        """

    def update_offsets(self) -> MaybeAwaitable[Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]] | None]:
        """See `SourceTask.update_offsets`: source offsets after skipped input, as after control batches."""
        return None

    def commit(self) -> MaybeAwaitable[None]:
        """Acknowledge to the source, if it needs that; called after source offsets were committed."""

    def statistics(self) -> Mapping[str, float]:
        """See `SourceTask.statistics`."""
        return {}

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened; see `SourceTask.stop`."""

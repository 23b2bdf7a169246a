"""The answer to batches that are appended, once they are known to be kept: on the disk, with other replicas.

It is made by what it waits for, without a task of its own and mostly without the event loop's help: with
acks=all every request has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.produce import PartitionProduced
from logd.broker.partition.uncommitted import Commit
from logd.broker.work.timeouts import Timeouts

if TYPE_CHECKING:
    from logd.broker.partition.partition import Partition


class PendingAck(NamedTuple):
    """A batch that waits: an answer's list and place in it, and what it waits for (`Partition.flushed`)."""

    produced: list[PartitionProduced]
    place: int
    partition: Partition
    kept: Awaitable[None]


class Acknowledgement:
    """`answer` is what `encode` makes once all batches are kept, or are known not to be: `failed` makes the
    places of these, with REQUEST_TIMED_OUT for what other replicas have not got within `timeout_s` seconds.
    A disk of this broker's own is waited for as long as it takes. Whoever cancels `answer` waits no more.
    """

    __slots__ = (
        "_encode",
        "_failed",
        "_is_late",
        "_left",
        "_timeout_s",
        "_timeouts",
        "_waiting",
        "answer",
    )

    def __init__(
        self,
        unkept: Sequence[PendingAck],
        timeout_s: float,
        timeouts: Timeouts,
        *,
        failed: Callable[[int, KafkaError], PartitionProduced],
        encode: Callable[[], bytes],
    ) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._timeout_s = timeout_s
        self._timeouts = timeouts
        self._failed = failed
        self._encode = encode
        self._left = len(unkept)
        self._is_late = False
        self._waiting: list[tuple[PendingAck, Commit | asyncio.Future[None]]] = []
        timeouts.add(self, timeout_s)
        self.answer.add_done_callback(self._end)
        for each in unkept:
            kept = each.kept
            if isinstance(kept, Commit):
                self._waiting.append((each, kept))
                kept.then(partial(self._take_commit, each))  # which may be at once
            else:
                kept = asyncio.ensure_future(kept)
                self._waiting.append((each, kept))
                kept.add_done_callback(partial(self._take, each))

    def _take(self, each: PendingAck, kept: asyncio.Future[None]) -> None:
        if kept.cancelled():
            if not self._is_late:
                self.answer.cancel()  # from inside, or by `_end`
                return
            each.produced[each.place] = _timed_out(each)
        elif (error := kept.exception()) is not None:
            if self.answer.done():
                return
            if not isinstance(error, KafkaError):
                self.answer.set_exception(error)
                return
            each.produced[each.place] = self._failed(each.partition.index, error)
        self._count()

    def _take_commit(self, each: PendingAck, commit: Commit) -> None:
        if commit.error is not None:
            each.produced[each.place] = self._failed(each.partition.index, commit.error)
        self._count()

    def _count(self) -> None:
        """Count one batch as done, and answer after the last one."""
        self._left -= 1
        if self._left or self.answer.done():
            return
        # The usual end needs no callback: one call of the event loop's less for each request.
        self.answer.remove_done_callback(self._end)
        self._timeouts.remove(self, self._timeout_s)
        self._waiting = []
        try:
            self.answer.set_result(self._encode())
        except Exception as error:
            self.answer.set_exception(error)

    def expire(self) -> None:
        """Wait no more for what other replicas have not got."""
        self._is_late = True
        for each, kept in self._waiting:
            if each.partition.role is None:
                continue
            if isinstance(kept, Commit):
                if not kept.is_done:
                    kept.cancel()
                    each.produced[each.place] = _timed_out(each)
                    self._count()
            else:
                kept.cancel()

    def _end(self, answer: asyncio.Future[bytes]) -> None:
        self._timeouts.remove(self, self._timeout_s)
        waiting, self._waiting = self._waiting, []
        if answer.cancelled():
            for _, kept in waiting:
                kept.cancel()


def _timed_out(each: PendingAck) -> PartitionProduced:
    return PartitionProduced(each.partition.index, ErrorCode.REQUEST_TIMED_OUT)

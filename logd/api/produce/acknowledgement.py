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
    """A batch that waits: the list of its response with its index there, and the future it waits for
    (`Partition.flushed`).
    """

    produced: list[PartitionProduced]
    place: int
    partition: Partition
    durable: Awaitable[None]


class Acknowledgement:
    """The response to a produce request whose batches still have to become durable.

    `answer` ends with the result of `encode` once every batch is durable or has failed. `failed` creates the
    response of a failed batch. Batches that other replicas lack after `timeout_s` seconds fail with
    REQUEST_TIMED_OUT; the wait for this broker's own disk has no limit. Cancelling `answer` ends the wait.
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
        pending: Sequence[PendingAck],
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
        self._left = len(pending)
        self._is_late = False
        self._waiting: list[tuple[PendingAck, Commit | asyncio.Future[None]]] = []
        timeouts.add(self, timeout_s)
        self.answer.add_done_callback(self._end)
        for each in pending:
            durable = each.durable
            if isinstance(durable, Commit):
                self._waiting.append((each, durable))
                durable.then(partial(self._take_commit, each))  # which may be at once
            else:
                durable = asyncio.ensure_future(durable)
                self._waiting.append((each, durable))
                durable.add_done_callback(partial(self._take, each))

    def _take(self, each: PendingAck, durable: asyncio.Future[None]) -> None:
        if durable.cancelled():
            if not self._is_late:
                self.answer.cancel()  # from inside, or by `_end`
                return
            each.produced[each.place] = _timed_out(each)
        elif (error := durable.exception()) is not None:
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
        """Fail the batches that other replicas lack, with REQUEST_TIMED_OUT."""
        self._is_late = True
        for each, durable in self._waiting:
            if each.partition.role is None:
                continue
            if isinstance(durable, Commit):
                if not durable.is_done:
                    durable.cancel()
                    each.produced[each.place] = _timed_out(each)
                    self._count()
            else:
                durable.cancel()

    def _end(self, answer: asyncio.Future[bytes]) -> None:
        self._timeouts.remove(self, self._timeout_s)
        waiting, self._waiting = self._waiting, []
        if answer.cancelled():
            for _, durable in waiting:
                durable.cancel()


def _timed_out(each: PendingAck) -> PartitionProduced:
    return PartitionProduced(each.partition.index, ErrorCode.REQUEST_TIMED_OUT)

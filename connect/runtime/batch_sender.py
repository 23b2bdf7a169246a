"""The sending of a source's polled record batches, and what follows when they are acknowledged."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable
from typing import Any

from connect.api.raw_batch import RawBatch
from connect.errors import ConnectError
from connect.runtime.pending_poll import PendingPoll
from connect.runtime.raw_batches import Passed, PolledBatches
from connect.runtime.source_sender import SourceSender, too_large
from connect.runtime.submitted import SubmittedBatch
from kafka_client.errors import ErrorCode, KafkaError


class BatchSender(SourceSender):
    """Sends the polled batches of one source task. A batch that is refused fails the task."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.acknowledged_batches: deque[tuple[RawBatch, int | None]] = deque()
        """Batches for `BatchSourceTask.commit_batch`, each with its first record's offset.

        The producer's memory bounds them: they are taken out between two polls.
        """

    @property
    def acknowledgements(self) -> int:
        """The number of acknowledged batches whose `commit_batch` call is due."""
        return len(self.acknowledged_batches)

    def forget_places(self, begin: int) -> None:
        """Have the plugin told, of the acknowledgements from this one on, that nothing is in the log."""
        for index in range(begin, len(self.acknowledged_batches)):
            self.acknowledged_batches[index] = (self.acknowledged_batches[index][0], None)

    async def send_batches(self, polled: PolledBatches, submitted: SubmittedBatch) -> None:
        """Pass the batches of a poll to the producer. Waits for room in it."""
        offsets: list[int | None] = [None] * len(polled.batches)

        def acked(pending: PendingPoll) -> None:
            self._metrics.acked += polled.count
            self._metrics.written += pending.written
            self.acknowledged_batches.extend(zip(polled.batches, offsets, strict=True))

        pending = PendingPoll((), submitted, follows=False, on_acked=acked)
        for index, (batch, passed) in enumerate(zip(polled.batches, polled.passed, strict=True)):
            if passed.records:
                sending = await self._send_batch(batch, passed)
                self._follow(sending, passed.records, pending, functools.partial(offsets.__setitem__, index))
        pending.seal()

    async def _send_batch(self, batch: RawBatch, passed: Passed) -> asyncio.Future[int | None]:
        self._check_topic(batch.topic)
        await self._patiently(lambda: self._topics.partition_count(batch.topic))
        self._note_topic(batch.topic)
        try:
            return await self._producer.send_batch(batch.topic, batch.partition, passed.data)
        except KafkaError as e:
            if e.code is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
            raise too_large(e) from e

    def _follow(
        self,
        sending: asyncio.Future[int | None],
        count: int,
        pending: PendingPoll,
        note: Callable[[int | None], None],
    ) -> None:
        self._unanswered.add(sending)
        pending.begin()

        def ended(sending: asyncio.Future[int | None]) -> None:
            self._unanswered.discard(sending)
            error = ConnectError("sending was cancelled") if sending.cancelled() else sending.exception()
            if error is None:
                note(sending.result())
                pending.end(written=count)
            else:
                self._on_failure(error)

        sending.add_done_callback(ended)

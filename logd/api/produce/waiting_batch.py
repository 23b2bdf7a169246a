"""A produced batch that cannot be appended at once: it is not validated, or its producer not admitted yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.partition.batch_rules import NotYetValidated

if TYPE_CHECKING:
    from kafka_client.wire.produce import PartitionProduced
    from logd.broker.partition.partition import Partition
    from logd.broker.topics.topic import Topic
    from logd.broker.work.pool import Validator
    from logd.storage import Appended


class WaitingBatch(NamedTuple):
    """A batch that waits, and where its answer belongs: the place in the list `produced`.

    `records` is a copy of the batch. `append` tries to append it, with `validated` if a thread has validated
    it; it raises NotYetAdmitted or NotYetValidated if the batch has to wait again.
    """

    produced: list[PartitionProduced]
    place: int
    topic: Topic
    partition: Partition
    records: memoryview
    now_ms: int
    append: Callable[..., Appended]
    reason: NotYetAdmitted | NotYetValidated

    async def appended(self, validator: Validator) -> Appended:
        """Append the batch once nothing is in its way. Raises KafkaError.

        Another broker may lead the partition by then: what is written here would be in nobody's history.
        """
        append, reason = self.append, self.reason
        while True:
            if isinstance(reason, NotYetAdmitted):
                await reason.flushed
            else:
                job = partial(reason.rules.validate, reason.header, self.records, self.now_ms)
                append = partial(self.append, validated=await validator.run(job, len(self.records)))
            partition = self.partition
            if self.topic.partition(partition.index) is not partition:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} was closed and opened again")
            try:
                return append()
            except (NotYetAdmitted, NotYetValidated) as again:
                reason = again

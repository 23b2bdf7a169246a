"""One partition led by this broker: its log, its leader epoch and the fetches that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from logd.broker.batch_rules import BatchRules
from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.errors import ErrorCode, KafkaError
from logd.records.header import BatchHeader, Buffer, read_header
from logd.records.slice import FileSlice
from logd.records.validate import check_produced

if TYPE_CHECKING:
    from logd.storage import Appended, Log, LogFolder


REPLICAS = 1
"""Replicas of every partition: one broker holds one."""


class AppendWaiter(Protocol):
    """Something that waits for records, such as a long-polling fetch."""

    def on_append(self) -> None:
        """Records came, or the partition is gone: look again."""


class Partition:
    """Owns a storage log. With one replica the high watermark is the log end offset.

    ``waiters`` are told after each append, in the loop's next turn, so that a burst of appends wakes them
    once.
    """

    __slots__ = (
        "_has_appended",
        "_rules",
        "config",
        "flushes",
        "folder",
        "index",
        "leader_epoch",
        "log",
        "max_message_bytes",
        "min_insync_replicas",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self,
        log: Log,
        folder: LogFolder,
        topic_id: bytes,
        config: TopicConfig,
        has_appended: Callable[[Partition], None],
    ) -> None:
        self.log = log
        self.folder = folder
        self.topic = log.topic
        self.topic_id = topic_id
        self.index = log.partition
        self.leader_epoch = max(log.latest_epoch, 0)
        self.waiters: set[AppendWaiter] = set()
        self._has_appended = has_appended
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Take new settings of the topic; they hold from the next append on."""
        self.config = config
        self.log.config = config
        self.max_message_bytes = config.max_message_bytes
        self.min_insync_replicas = config.min_insync_replicas
        self._rules = BatchRules(str(self), config)
        self.flushes = config.flush_messages != LONG_MAX or config.flush_ms != LONG_MAX

    @property
    def is_offline(self) -> bool:
        """Whether the partition's log folder has failed."""
        return self.folder.failure is not None

    def check_leader_epoch(self, known: int) -> None:
        """Fence a client whose metadata is older or newer than ours; -1 means it does not care (KIP-320)."""
        if known < 0 or known == self.leader_epoch:
            return
        code = ErrorCode.FENCED_LEADER_EPOCH if known < self.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"{self}: leader epoch {known}, it is {self.leader_epoch} here")

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.log_start_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which records are committed and may be read."""
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which no transaction is open."""
        return self.log.log_end_offset

    def produce(self, records: memoryview, now_ms: int, acks: int) -> Appended:
        """Check and append what a client sent: exactly one batch (KIP-98).

        Raises KafkaError with the code the client is to be answered with; nothing was written then.
        """
        if acks == -1 and self.min_insync_replicas > REPLICAS:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self}: min.insync.replicas is {self.min_insync_replicas}, there is {REPLICAS} replica",
            )
        header, records = self._rules.admit(check_produced(records), records, now_ms)
        return self._append(records, header, now_ms)

    def append(self, batch: Buffer, now_ms: int) -> Appended:
        """Append one batch the broker built itself (coordinators); KafkaError when the log cannot take it."""
        return self._append(memoryview(batch), read_header(batch), now_ms)

    def _append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        log = self.log
        appended = log.append(batch, self.leader_epoch, now_ms, headers=(header,))
        if self.flushes and log.needs_flush(now_ms):
            log.flush()
        if self.waiters:
            self._has_appended(self)
        return appended

    def read(
        self, offset: int, max_bytes: int, *, committed: bool = False, min_one_batch: bool = True
    ) -> FileSlice | None:
        """Whole batches from the one that holds ``offset``; None at the end of what may be read.

        That is the high watermark, with ``committed`` the last stable offset.
        Raises OffsetOutOfRange and KafkaError(KAFKA_STORAGE_ERROR).
        """
        bound = self.last_stable_offset if committed else self.high_watermark
        return self.log.read(offset, max_bytes, upper_bound=bound, min_one_batch=min_one_batch)

    def read_all(self) -> Iterator[memoryview]:
        """Chunks of whole batches, from the log start to the high watermark, for a coordinator's replay."""
        return self.log.batches(self.log.log_start_offset, self.high_watermark)

    def wake_waiters(self) -> None:
        """Tell everything that waits for this partition to look again."""
        for waiter in tuple(self.waiters):
            waiter.on_append()

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

"""One replica that follows: its place in fetching, between the core that decides and the log that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from logd.replication.divergence import EpochTable
from logd.replication.follower import Fetch, Follower, Next
from logd.topic_partition import TopicPartition

if TYPE_CHECKING:
    from logd.records.header import Buffer


class Replica(Protocol):
    """The partition that follows; `broker.partition.Partition`. Each method may raise KafkaError."""

    @property
    def tp(self) -> TopicPartition: ...

    @property
    def topic_id(self) -> bytes: ...

    @property
    def log_start_offset(self) -> int: ...

    def copy(self, batches: Buffer, now_ms: int) -> Any:
        """Append what the leader sent."""

    def advance_high_watermark(self) -> None:
        """The follower's has risen."""


class Following:
    """`core` says what to fetch; `version` grows with every truncation, so that an answer to a question before
    it counts no more. `not_before`: the end of a backoff, in the loop's time.
    """

    __slots__ = ("core", "log", "not_before", "replica", "topic_id", "tp", "version")

    def __init__(self, replica: Replica, log: EpochTable, core: Follower) -> None:
        self.replica = replica
        self.log = log
        self.core = core
        self.tp = replica.tp
        self.topic_id = replica.topic_id
        self.not_before = 0.0
        self.version = 0

    @property
    def next(self) -> Next:
        """What has to happen next."""
        return self.core.next

    @property
    def _fetch(self) -> Fetch:
        fetch = self.core.next
        assert isinstance(fetch, Fetch), f"{self.tp} is not to be fetched but {fetch}"
        return fetch

    # As a fetch session asks

    @property
    def fetch_offset(self) -> int:
        return self._fetch.offset

    @property
    def leader_epoch(self) -> int:
        return self.core.leader_epoch

    @property
    def fetch_epoch(self) -> int:
        return self._fetch.last_fetched_epoch

    @property
    def own_log_start(self) -> int:
        return self.replica.log_start_offset

    def succeed(self, before: Following) -> None:
        """A leader's answers to a follower hold nothing that is said only once."""


Now = Callable[[], int]
"""Milliseconds since 1970."""

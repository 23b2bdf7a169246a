"""A replica that follows: its place in fetching, between the core that decides and the log."""

from __future__ import annotations

from logd.broker.partition.partition import Partition
from logd.replication import Fetch, Follower, Next


class FollowedPartition:
    """`core` says what comes next; `version` grows with every truncation: an answer to a question before it
    counts no more. `not_before`: the end of a backoff, in the loop's time, after so many `failures` in a row.
    `lag`: committed records not copied yet, as of the last answer; `is_behind`: whether there were such, or
    there was no answer yet.
    """

    __slots__ = (
        "core",
        "failures",
        "is_behind",
        "lag",
        "not_before",
        "partition",
        "topic_id",
        "tp",
        "version",
    )

    def __init__(self, partition: Partition, core: Follower) -> None:
        self.partition = partition
        self.core = core
        self.tp = partition.tp
        self.topic_id = partition.topic_id
        self.not_before = 0.0
        self.failures = 0
        self.lag = 0
        self.is_behind = True
        self.version = 0

    @property
    def next(self) -> Next:
        """The core's next step."""
        return self.core.next

    @property
    def fetch(self) -> Fetch:
        """`next` where it is to be fetched."""
        fetch = self.core.next
        assert isinstance(fetch, Fetch), f"{self.tp} is not to be fetched: {fetch}"
        return fetch

    # As a fetch session asks

    @property
    def fetch_offset(self) -> int:
        return self.fetch.offset

    @property
    def leader_epoch(self) -> int:
        return self.core.leader_epoch

    @property
    def fetch_epoch(self) -> int:
        return self.fetch.last_fetched_epoch

    @property
    def own_log_start(self) -> int:
        return self.partition.log_start_offset

    def succeed(self, before: FollowedPartition) -> None:
        """Take over from the fetching of an earlier leader; nothing is kept: responses repeat everything."""

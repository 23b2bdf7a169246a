"""Where fetching of one partition stands, and what is buffered of it."""

from __future__ import annotations

from collections import deque

from logd.client.cluster.metadata import NO_NODE, TopicPartition
from logd.client.fetcher.fetched import Fetched
from logd.errors import MillstreamError


class FetchPosition:
    """One assigned partition.

    `position` is what the user gets next, `fetch_offset` what is asked of the broker next; between them
    lies what is buffered. Negative ones are still to be looked up (-1 latest, -2 earliest). `epoch` grows
    with every seek: a response to a question of an older epoch is stale. A parked partition is not
    fetched until a seek; its `error` is raised once. `not_before`: end of a backoff, in the loop's time.
    """

    __slots__ = (
        "buffered",
        "buffered_bytes",
        "epoch",
        "error",
        "fetch_offset",
        "leader_epoch",
        "missing_since",
        "node",
        "not_before",
        "parked",
        "paused",
        "position",
        "topic_id",
        "tp",
    )

    def __init__(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        self.tp = tp
        self.position = offset
        self.fetch_offset = offset
        self.epoch = epoch
        self.paused = False
        self.buffered: deque[Fetched] = deque()
        self.buffered_bytes = 0
        self.error: MillstreamError | None = None
        self.parked = False
        self.node = NO_NODE
        self.leader_epoch = -1
        self.topic_id = b""
        self.not_before = 0.0
        self.missing_since: float | None = None

    @property
    def needs_offset(self) -> bool:
        """Whether the offset has to be looked up before anything can be fetched."""
        return self.fetch_offset < 0 and not self.parked

    @property
    def homeless(self) -> bool:
        """Whether the leader has to be found."""
        return self.node == NO_NODE and not self.parked

    def found_offset(self, offset: int) -> None:
        """The offset looked up."""
        self.fetch_offset = offset
        if not self.buffered:
            self.position = offset

    def put(self, fetched: Fetched) -> None:
        """Buffer what came; fetching goes on behind it."""
        self.buffered.append(fetched)
        self.buffered_bytes += len(fetched.buffer)
        self.fetch_offset = fetched.next_offset

    def take(self) -> Fetched:
        """Hand out the oldest of what is buffered."""
        fetched = self.buffered.popleft()
        self.buffered_bytes -= len(fetched.buffer)
        self.position = fetched.next_offset
        return fetched

    def drop_buffered(self) -> int:
        """Forget what is buffered, to fetch it again; returns its bytes."""
        dropped, self.buffered_bytes = self.buffered_bytes, 0
        if self.buffered:
            self.buffered.clear()
            self.fetch_offset = self.position
        return dropped

    def park(self, error: MillstreamError | None) -> None:
        """Fetch no more until a seek; the user gets `error` once what is buffered is handed out."""
        self.parked = True
        self.error = error

    def seek(self, offset: int, epoch: int) -> None:
        """Start anew at `offset`."""
        self.drop_buffered()
        self.epoch = epoch
        self.position = self.fetch_offset = offset
        self.parked, self.error = False, None
        self.missing_since, self.not_before = None, 0.0

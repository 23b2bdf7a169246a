"""Queries over bidders' activity: q11 by sessions of event time, q12 by windows of processing time.

Rows are updates, of which the last of a key is valid.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.nexmark.events import BIDS, Bid
from streams import SessionWindows, StreamsBuilder, TimeWindows, Topology

GAP = SIZE = timedelta(seconds=10)


def q11() -> Topology:
    """Count the bids in each user session, which ends after 10 s without a bid of the person.

    Key: `bidder start end`, the times of the first and the last bid in ms. A session that grows or is merged
    is deleted, and sent again with its new ends. There is no grace: a bid that arrives after its session
    closed is dropped.
    """
    builder = StreamsBuilder(key_serde=int)
    (
        builder.stream(BIDS, value_serde=Bid)
        .group_by(lambda auction, bid: bid.bidder, name="by-bidder")
        .windowed_by(SessionWindows(GAP))
        .count(store="sessions")
        .to_stream(key=lambda session, bids: f"{session.key} {session.window.start} {session.window.end}")
        .to("nexmark-q11", key_serde=str)
    )
    return builder.build()


def now_ms() -> int:
    """Return the clock's time, in ms since the epoch."""
    return time.time_ns() // 1_000_000


def q12(clock: Callable[[], int] = now_ms) -> Topology:
    """Count the bids of a person in each 10 s of processing time; `clock` is read at each bid.

    Key: `bidder start`, in ms. Which window a bid is in depends on the run; each is in exactly one.
    """

    def processing_time(key: Any, value: Any, timestamp: int) -> int:
        return clock()

    builder = StreamsBuilder(key_serde=int)
    (
        builder.stream(BIDS, value_serde=Bid, timestamp_extractor=processing_time)
        .group_by(lambda auction, bid: bid.bidder, name="by-bidder")
        .windowed_by(TimeWindows(SIZE))
        .count(store="bids-of-bidder")
        .to_stream(key=lambda windowed, bids: f"{windowed.key} {windowed.window.start}")
        .to("nexmark-q12", key_serde=str)
    )
    return builder.build()

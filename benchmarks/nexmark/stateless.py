"""Queries without state: q0, q1, q2. Each output record follows from one bid alone and is final.

Keys stay those of `bids`. An out-of-order bid makes no difference.
"""

from __future__ import annotations

import msgspec

from benchmarks.nexmark.events import BIDS, Bid
from streams import KStream, StreamsBuilder, Topology

EUROS_PER_DOLLAR = 0.908
EVERY = 123


class Price(msgspec.Struct, frozen=True, gc=False):
    """The result of q2 for a bid."""

    auction: int
    price: int


def _bids() -> tuple[StreamsBuilder, KStream[int, Bid]]:
    builder = StreamsBuilder()
    return builder, builder.stream(BIDS, key_serde=int, value_serde=Bid)


def q0() -> Topology:
    """Copy every bid, decoded and encoded again."""
    builder, bids = _bids()
    bids.to("nexmark-q0")
    return builder.build()


def q1() -> Topology:
    """Convert the price of every bid to euros, rounded to whole cents."""

    def in_euros(bid: Bid) -> Bid:
        price = round(bid.price * EUROS_PER_DOLLAR)
        return Bid(bid.auction, bid.bidder, price, bid.date_time, bid.extra)

    builder, bids = _bids()
    bids.map_values(in_euros).to("nexmark-q1", value_serde=Bid)
    return builder.build()


def q2() -> Topology:
    """Select the bids for one auction in 123, with auction and price."""
    builder, bids = _bids()
    few = bids.filter(lambda auction, bid: bid.auction % EVERY == 0)
    few.map_values(lambda bid: Price(bid.auction, bid.price)).to("nexmark-q2", value_serde=Price)
    return builder.build()

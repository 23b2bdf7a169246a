"""Queries over what is highest in a window: q5, the auctions with most bids, and q7, the highest bids.

Both have two stages, so that all but a window's last step is shared out by auction: what an auction has in a
window, told once when the window closed; then the highest of those, by window. The first stage has no
grace, so an out-of-order bid whose window closed is dropped. The second stage's rows are updates, of which
the last of a key is valid: a window has all of them once every partition of `bids` is past its end. Windows
that are open at the end of the input have none.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from benchmarks.nexmark.events import BIDS, Bid
from streams import StreamsBuilder, Suppressed, TimeWindows, Topology, Windowed

SIZE, ADVANCE = timedelta(seconds=10), timedelta(seconds=2)


class HotItems(msgspec.Struct, frozen=True, gc=False):
    """A window's auctions with most bids, by id, and how many bids each of them has."""

    auctions: list[int] = []
    bids: int = 0


class HighestBids(msgspec.Struct, frozen=True, gc=False):
    """A window's bids with the highest price, by auction, time and bidder."""

    price: int = 0
    bids: list[Bid] = []


def q5() -> Topology:
    """Find the auctions with the most bids in the last 10 s, every 2 s. Key: the window's start, in ms.

    The counts by auction are emitted on window close (KIP-825).
    """

    def hotter(window: int, counted: HotItems, so_far: HotItems) -> HotItems:
        if counted.bids == so_far.bids:
            return HotItems(sorted([*so_far.auctions, *counted.auctions]), so_far.bids)
        return max(so_far, counted, key=lambda each: each.bids)

    def by_window(windowed: Windowed[int], bids: int) -> tuple[int, HotItems]:
        return windowed.window.start, HotItems([windowed.key], bids)

    builder = StreamsBuilder(key_serde=int)
    (
        builder.stream(BIDS, value_serde=Bid)
        .group_by_key()
        .windowed_by(TimeWindows(SIZE, advance=ADVANCE), emit_strategy="on_window_close")
        .count(store="bids-of-auction")
        .to_stream()
        .map(by_window)
        .group_by_key(key_serde=int, value_serde=HotItems)
        .aggregate(HotItems, hotter, value_serde=HotItems, store="hot-items")
        .to_stream()
        .to("nexmark-q5")
    )
    return builder.build()


def q7() -> Topology:
    """Find all bids with the highest price of each 10 s. Key: the window's start, in ms.

    The highest bids of each auction are suppressed until their window closes.
    """

    def add(auction: int, bid: Bid, so_far: HighestBids) -> HighestBids:
        return _higher(so_far, HighestBids(bid.price, [bid]))

    def merge(window: int, highest: HighestBids, so_far: HighestBids) -> HighestBids:
        return _higher(so_far, highest)

    def by_window(windowed: Windowed[int], highest: HighestBids) -> tuple[int, HighestBids]:
        return windowed.window.start, highest

    builder = StreamsBuilder(key_serde=int)
    (
        builder.stream(BIDS, value_serde=Bid)
        .group_by_key()
        .windowed_by(TimeWindows(SIZE))
        .aggregate(HighestBids, add, value_serde=HighestBids, store="highest-of-auction")
        .suppress(Suppressed.until_window_closes())
        .to_stream()
        .map(by_window)
        .group_by_key(key_serde=int, value_serde=HighestBids)
        .aggregate(HighestBids, merge, value_serde=HighestBids, store="highest")
        .to_stream()
        .to("nexmark-q7")
    )
    return builder.build()


def _higher(one: HighestBids, other: HighestBids) -> HighestBids:
    if one.price != other.price:
        return max(one, other, key=lambda each: each.price)
    bids = sorted([*one.bids, *other.bids], key=lambda bid: (bid.auction, bid.date_time, bid.bidder))
    return HighestBids(one.price, bids)

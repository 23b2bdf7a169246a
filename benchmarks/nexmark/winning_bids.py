"""Queries over winning bids: q9 itself, and the averages of their prices, q4 and q6.

An auction's winning bid is its highest from its beginning to its expiry, both included; of equal ones the
first, and of those of one time that of the bidder with the lower id.

Auctions and bids are joined as streams. The window is as long as the longest auction; without a grace,
events out of order across the longest auction are lost. What comes out is updates: the leading bid while an
auction runs, the winning one in the end. Of one key the last is valid.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from benchmarks.nexmark.events import AUCTIONS, BIDS, Auction, Bid
from benchmarks.nexmark.generator import longest_auction
from streams import JoinWindows, KTable, StreamsBuilder, Topology

LONGEST = longest_auction()
"""The longest auction at the generator's default rate of events."""
SALES = 10
"""How many of a seller's last sales q6 looks at."""


class WinningBid(msgspec.Struct, frozen=True, gc=False):
    """An auction and its highest bid (so far)."""

    auction: Auction
    bid: Bid


class Total(msgspec.Struct, gc=False):
    """The sum and the number of a category's winning bids."""

    price: int = 0
    auctions: int = 0


class Sale(msgspec.Struct, frozen=True, order=True, gc=False):
    """A winning bid as q6 needs it, sorted by when the auction expires."""

    expires: int
    auction: int
    price: int


def _winning_bids(builder: StreamsBuilder, longest: timedelta) -> KTable[int, WinningBid]:
    auctions = builder.stream(AUCTIONS, value_serde=Auction)
    bids = builder.stream(BIDS, value_serde=Bid)
    windows = JoinWindows(before=0, after=longest)
    return (
        auctions.join(bids, WinningBid, windows=windows, store="offers")
        .filter(lambda auction, offer: offer.bid.date_time <= offer.auction.expires)
        .group_by_key(value_serde=WinningBid)
        .reduce(_better, store="winning-bids")
    )


def _better(leading: WinningBid, offer: WinningBid) -> WinningBid:
    return min(leading, offer, key=_rank)


def _rank(offer: WinningBid) -> tuple[int, int, int]:
    bid = offer.bid
    return -bid.price, bid.date_time, bid.bidder


def q4(longest: timedelta = LONGEST) -> Topology:
    """Compute the average price of the winning bids in each category; the key is the category.

    Results are updates: an auction counts from its first bid on, and a higher bid replaces its price.
    """

    def add(category: int, price: int, total: Total) -> Total:
        return Total(total.price + price, total.auctions + 1)

    def subtract(category: int, price: int, total: Total) -> Total:
        return Total(total.price - price, total.auctions - 1)

    builder = StreamsBuilder(key_serde=int)
    (
        _winning_bids(builder, longest)
        .group_by(lambda auction, offer: (offer.auction.category, offer.bid.price), value_serde=int)
        .aggregate(Total, add, subtract, value_serde=Total, store="totals")
        .map_values(lambda total: total.price / total.auctions)
        .to_stream()
        .to("nexmark-q4", value_serde=float)
    )
    return builder.build()


def q6(longest: timedelta = LONGEST) -> Topology:
    """Compute the average price of the winning bids in each seller's last ten auctions. Key: the seller.

    The last auctions are those that expire last; at equal times the higher id is later. Results are updates:
    an auction counts from its first bid on, also while it runs.
    """

    def sale(auction: int, offer: WinningBid) -> tuple[int, Sale]:
        return offer.auction.seller, Sale(offer.auction.expires, auction, offer.bid.price)

    def add(seller: int, sale: Sale, sales: list[Sale]) -> list[Sale]:
        return sorted([*sales, sale])[-SALES:]

    def subtract(seller: int, sale: Sale, sales: list[Sale]) -> list[Sale]:
        # The same auction is added again at once, so that an eleventh is never missed.
        return [each for each in sales if each.auction != sale.auction]

    def average(sales: list[Sale]) -> float:
        return sum(sale.price for sale in sales) / len(sales)

    builder = StreamsBuilder(key_serde=int)
    (
        _winning_bids(builder, longest)
        .group_by(sale, value_serde=Sale)
        .aggregate(list[Sale], add, subtract, value_serde=list[Sale], store="sales")
        .map_values(average)
        .to_stream()
        .to("nexmark-q6", value_serde=float)
    )
    return builder.build()


def q9(longest: timedelta = LONGEST) -> Topology:
    """Join each auction with its winning bid; the key is the auction's id.

    Results are updates, as above. Auctions without bids have no row.
    """
    builder = StreamsBuilder(key_serde=int)
    _winning_bids(builder, longest).to_stream().to("nexmark-q9", value_serde=WinningBid)
    return builder.build()

"""q3, local item suggestion: who sells in some category in some states; a foreign-key join of two tables."""

from __future__ import annotations

import msgspec

from benchmarks.nexmark.events import AUCTIONS, PERSONS, Auction, Person
from streams import StreamsBuilder, Topology

CATEGORY, STATES = 10, frozenset(("OR", "ID", "CA"))


class LocalItem(msgspec.Struct, frozen=True, gc=False):
    """An auction's seller."""

    name: str
    city: str
    state: str
    auction: int


def q3() -> Topology:
    """Join auctions of category 10 with their sellers in Oregon, Idaho or California. Key: the auction's id.

    A row is sent once both auction and seller exist, in whichever order they arrive. Rows are updates: the
    last row of a key is valid. A person who moved would change the rows of all their auctions. Nothing
    depends on time, and out-of-order events make no difference.
    """
    builder = StreamsBuilder(key_serde=int)
    auctions = builder.table(AUCTIONS, value_serde=Auction, store="auctions")
    persons = builder.table(PERSONS, value_serde=Person, store="persons")
    items = auctions.filter(lambda auction, row: row.category == CATEGORY)
    neighbours = persons.filter(lambda person, row: row.state in STATES)

    def item(auction: Auction, seller: Person) -> LocalItem:
        return LocalItem(seller.name, seller.city, seller.state, auction.id)

    items.join(neighbours, item, foreign_key=lambda auction: auction.seller).to_stream().to(
        "nexmark-q3", value_serde=LocalItem
    )
    return builder.build()

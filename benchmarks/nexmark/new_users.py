"""q8, monitor new users: people who put something up in the 10 s in which they signed up."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from benchmarks.nexmark.events import AUCTIONS, PERSONS, Auction, Person
from streams import KTable, Materialized, StreamsBuilder, TimeWindows, Topology, Windowed

SIZE = timedelta(seconds=10)
KEPT = timedelta(days=1)
"""How far apart in event time auctions and people may be processed. Auctions come by a repartition topic, and
a window that is forgotten by then would miss its other half.
"""


class NewSeller(msgspec.Struct, frozen=True, gc=False):
    """A person, the beginning of the window in ms, and how many auctions of theirs began in it."""

    person: int
    name: str
    window: int
    auctions: int


def q8() -> Topology:
    """Join two windowed tables: people by id, and the number of auctions by seller, of each 10 s.

    Key: `person window`. Rows are updates, sent once both sides exist; the last row of a key is valid.
    There is no grace, so an event that arrives after its window's end is dropped.
    """
    builder = StreamsBuilder(key_serde=int)
    windows = TimeWindows(SIZE)
    signed_up: KTable[Windowed[int], Person] = (
        builder.stream(PERSONS, value_serde=Person)
        .group_by_key()
        .windowed_by(windows)
        .reduce(lambda first, later: later, store=Materialized(name="new-persons", retention=KEPT))
    )
    sellers = (
        builder.stream(AUCTIONS, value_serde=Auction)
        .group_by(lambda auction, row: row.seller, name="by-seller")
        .windowed_by(windows)
        .count(store=Materialized(name="auctions-of-seller", retention=KEPT))
    )
    signed_up.join(sellers, lambda person, auctions: (person, auctions)).to_stream().map(_new_seller).to(
        "nexmark-q8", key_serde=str, value_serde=NewSeller
    )
    return builder.build()


def _new_seller(windowed: Windowed[int], joined: tuple[Person, int]) -> tuple[str, NewSeller]:
    person, auctions = joined
    start = windowed.window.start
    return f"{person.id} {start}", NewSeller(person.id, person.name, start, auctions)

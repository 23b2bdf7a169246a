"""The events and their topics. Fields are Nexmark's; an event's time is its record's timestamp.

| topic | key | value |
|---|---|---|
| `persons` | the person's id | `Person` |
| `auctions` | the auction's id | `Auction` |
| `bids` | the auction's id | `Bid` |

Keys are Kafka's Long, values JSON.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

PERSONS, AUCTIONS, BIDS = "persons", "auctions", "bids"


class Person(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Someone who signed up. `date_time`, here and below: ms since the epoch."""

    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: int
    extra: str


class Auction(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An item that `seller`, a person, puts up; bids count up to `expires`, in ms, included."""

    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int
    extra: str


class Bid(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A bid of `bidder`, a person; `price` is in cents, as all prices."""

    auction: int
    bidder: int
    price: int
    date_time: int
    extra: str


Event: TypeAlias = Person | Auction | Bid


def topic_and_key(event: Event) -> tuple[str, int]:
    """Return the topic of an event and its key."""
    if isinstance(event, Bid):
        return BIDS, event.auction
    return (AUCTIONS if isinstance(event, Auction) else PERSONS), event.id

"""Events like those of Nexmark's generator: of every 50, the first is a person, then come 3 auctions and 46
bids.

Half the bids are for one auction of the last hundred. Three of four auctions have the same seller and three
of four bids the same bidder, one of the last hundred people. The others are spread over the active ones. Some
refer to people and auctions that come only a little later. Lengths and prices have Nexmark's distributions.
The random numbers are Python's, so equal seeds give equal events, but not those of the Java generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from string import ascii_lowercase

from benchmarks.nexmark.events import Auction, Bid, Event, Person

AUCTIONS_PER_PERSON, BIDS_PER_PERSON = 3, 46
PERIOD = 1 + AUCTIONS_PER_PERSON + BIDS_PER_PERSON
"""Events from one person to the next."""
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
EVENTS_PER_SECOND = 10_000
BASE_TIME = 1_436_918_400_000
"""Time of the first event, in ms: 2015-07-15T00:00Z, a multiple of all windows."""

_HOT_BATCH = 100
_COLD_AUCTIONS, _COLD_SELLERS, _COLD_BIDDERS = 1 / 2, 1 / 4, 1 / 4
_OPEN_AUCTIONS, _ACTIVE_PEOPLE, _LEAD = 100, 1000, 10
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_FIRST_NAMES = [
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
]
_LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
_CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
_STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]


def longest_auction(events_per_second: int = EVENTS_PER_SECOND) -> timedelta:
    """Return the longest duration of an auction.

    It is twice the time in which as many auctions begin as are open on average.
    """
    events = _OPEN_AUCTIONS * PERIOD // AUCTIONS_PER_PERSON
    return timedelta(milliseconds=2 * (events * 1000 // events_per_second + 1))


def generate(count: int, *, seed: int = 1, events_per_second: int = EVENTS_PER_SECOND) -> Iterator[Event]:
    """Yield `count` events in order of time, the first at `BASE_TIME`."""
    draw = _Draw(Random(seed), int(longest_auction(events_per_second) / timedelta(milliseconds=1)))
    for number in range(count):
        time = BASE_TIME + number * 1000 // events_per_second
        period, place = divmod(number, PERIOD)
        if place == 0:
            yield draw.person(period, time)
        elif place <= AUCTIONS_PER_PERSON:
            yield draw.auction(period, period * AUCTIONS_PER_PERSON + place - 1, time)
        else:
            yield draw.bid(period, (period + 1) * AUCTIONS_PER_PERSON - 1, time)


@dataclass(frozen=True, slots=True)
class _Draw:
    """A generator of single random events; people and auctions are counted from 0."""

    random: Random
    longest_ms: int

    def person(self, number: int, time: int) -> Person:
        choice = self.random.choice
        return Person(
            id=FIRST_ID + number,
            name=f"{choice(_FIRST_NAMES)} {choice(_LAST_NAMES)}",
            email_address=f"{self._text(7)}@{self._text(5)}.com",
            credit_card=" ".join(f"{self.random.randrange(10_000):04}" for _ in range(4)),
            city=choice(_CITIES),
            state=choice(_STATES),
            date_time=time,
            extra=self._text(_PERSON_BYTES - 70),
        )

    def auction(self, last_person: int, number: int, time: int) -> Auction:
        initial = self._price()
        name, description = self._text(20), self._text(100)
        return Auction(
            id=FIRST_ID + number,
            item_name=name,
            description=description,
            initial_bid=initial,
            reserve=initial + self._price(),
            date_time=time,
            expires=time + 1 + self.random.randrange(self.longest_ms),
            seller=self._person_of(last_person, _COLD_SELLERS, hot=0),
            category=FIRST_CATEGORY + self.random.randrange(CATEGORIES),
            extra=self._text(_AUCTION_BYTES - 168),
        )

    def bid(self, last_person: int, last_auction: int, time: int) -> Bid:
        if self.random.random() < _COLD_AUCTIONS:
            oldest = max(last_auction - _OPEN_AUCTIONS, 0)
            auction = self.random.randrange(oldest, last_auction + 1 + _LEAD)
        else:
            auction = last_auction // _HOT_BATCH * _HOT_BATCH
        return Bid(
            auction=FIRST_ID + auction,
            bidder=self._person_of(last_person, _COLD_BIDDERS, hot=1),
            price=self._price(),
            date_time=time,
            extra=self._text(_BID_BYTES - 32),
        )

    def _person_of(self, last: int, cold: float, *, hot: int) -> int:
        """Return the id of an active person, or of the hot one; sellers and bidders have one each."""
        if self.random.random() >= cold:
            return FIRST_ID + last // _HOT_BATCH * _HOT_BATCH + hot
        return FIRST_ID + self.random.randrange(max(last + 1 - _ACTIVE_PEOPLE, 0), last + 1 + _LEAD)

    def _price(self) -> int:
        """Return 1 to 1,000,000 dollars, in cents; each power of ten is as likely as another."""
        return round(100 * 10 ** (6 * self.random.random()))

    def _text(self, length: int) -> str:
        """Return random letters, up to a fifth more or fewer than `length`."""
        spread = length // 5
        return "".join(self.random.choices(ascii_lowercase, k=length + self.random.randint(-spread, spread)))

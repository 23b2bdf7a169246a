"""The expected results of each query, computed in plain Python without `streams`.

Each query is a function of all events, in order of time. An answer is a dict. For q0 to q2 it counts the rows
that `row` returns; for the others it has the last value of each key. For q12 it has the bids of each bidder,
as their windows depend on the clock. Values are JSON values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import msgspec

from benchmarks.nexmark.events import Auction, Bid, Event, Person

Answer: TypeAlias = dict[Any, Any]
Events: TypeAlias = Sequence[Event]

SECONDS = 1000
_as_json = msgspec.json.Encoder(order="sorted").encode


def row(key: Any, value: Any) -> tuple[Any, bytes]:
    """Return a row in a hashable form, to be counted."""
    return key, _as_json(value)


def _bids(events: Events) -> Iterator[Bid]:
    return (event for event in events if isinstance(event, Bid))


def _auctions(events: Events) -> Iterator[Auction]:
    return (event for event in events if isinstance(event, Auction))


def _persons(events: Events) -> dict[int, Person]:
    return {event.id: event for event in events if isinstance(event, Person)}


def q0(events: Events) -> Answer:
    """Count all bids."""
    return Counter(row(bid.auction, bid) for bid in _bids(events))


def q1(events: Events) -> Answer:
    """Count all bids, with prices in euros."""
    return Counter(
        row(bid.auction, msgspec.to_builtins(bid) | {"price": round(bid.price * 0.908)})
        for bid in _bids(events)
    )


def q2(events: Events) -> Answer:
    """Count the bids for auctions 123, 246, ..., with their prices."""
    return Counter(
        row(bid.auction, {"auction": bid.auction, "price": bid.price})
        for bid in _bids(events)
        if not bid.auction % 123
    )


def q3(events: Events) -> Answer:
    """Return each auction of category 10 with its seller, if the seller is in OR, ID or CA.

    The key is the auction's id.
    """
    persons, answer = _persons(events), {}
    for auction in _auctions(events):
        seller = persons.get(auction.seller)
        if seller is None or auction.category != 10 or seller.state not in ("OR", "ID", "CA"):
            continue
        place = {"name": seller.name, "city": seller.city, "state": seller.state}
        answer[auction.id] = {**place, "auction": auction.id}
    return answer


def _winning(events: Events) -> Iterator[tuple[Auction, Bid]]:
    bids: defaultdict[int, list[Bid]] = defaultdict(list)
    for bid in _bids(events):
        bids[bid.auction].append(bid)
    for auction in _auctions(events):
        valid = [bid for bid in bids[auction.id] if auction.date_time <= bid.date_time <= auction.expires]
        if valid:
            highest = max(bid.price for bid in valid)
            first = [bid for bid in valid if bid.price == highest]
            yield auction, sorted(first, key=lambda bid: (bid.date_time, bid.bidder))[0]


def _mean(prices: Sequence[int]) -> float:
    return float(Fraction(sum(prices), len(prices)))


def q4(events: Events) -> Answer:
    """Return the average price of the winning bids in each category."""
    prices: defaultdict[int, list[int]] = defaultdict(list)
    for auction, bid in _winning(events):
        prices[auction.category].append(bid.price)
    return {category: _mean(each) for category, each in prices.items()}


def q5(events: Events) -> Answer:
    """Return the auctions with most bids in each window that has closed, by the window's start in ms."""
    counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    time = 0
    for bid in _bids(events):
        time = bid.date_time
        for start in range(time - time % (2 * SECONDS), time - 10 * SECONDS, -2 * SECONDS):
            counts[start][bid.auction] += 1
    answer = {}
    for start, bids in counts.items():
        if start + 10 * SECONDS <= time:
            most = max(bids.values())
            auctions = sorted(auction for auction, count in bids.items() if count == most)
            answer[start] = {"auctions": auctions, "bids": most}
    return answer


def q6(events: Events) -> Answer:
    """Return the average price of each seller's last ten auctions."""
    sales: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for auction, bid in _winning(events):
        sales[auction.seller].append((auction.expires, auction.id, bid.price))
    return {
        seller: _mean([price for _, _, price in sorted(each, reverse=True)[:10]])
        for seller, each in sales.items()
    }


def q7(events: Events) -> Answer:
    """Return the highest bids of each window that has closed, by the window's start in ms."""
    windows: defaultdict[int, list[Bid]] = defaultdict(list)
    time = 0
    for bid in _bids(events):
        time = bid.date_time
        windows[time - time % (10 * SECONDS)].append(bid)
    answer = {}
    for start, bids in windows.items():
        if start + 10 * SECONDS <= time:
            price = max(bid.price for bid in bids)
            highest = [msgspec.to_builtins(bid) for bid in bids if bid.price == price]
            highest.sort(key=lambda bid: (bid["auction"], bid["dateTime"], bid["bidder"]))
            answer[start] = {"price": price, "bids": highest}
    return answer


def q8(events: Events) -> Answer:
    """Return the number of auctions that each person began in the window in which the person signed up.

    The key is `person window`, with the window's start in ms.
    """
    persons = _persons(events)
    sold = Counter(
        (auction.seller, auction.date_time // (10 * SECONDS) * 10 * SECONDS) for auction in _auctions(events)
    )
    return {
        f"{seller} {start}": {"person": seller, "name": person.name, "window": start, "auctions": count}
        for (seller, start), count in sold.items()
        if (person := persons.get(seller)) and start <= person.date_time < start + 10 * SECONDS
    }


def q9(events: Events) -> Answer:
    """Return each auction with its winning bid, by the auction's id."""
    return {
        auction.id: {"auction": msgspec.to_builtins(auction), "bid": msgspec.to_builtins(bid)}
        for auction, bid in _winning(events)
    }


def q11(events: Events) -> Answer:
    """Return the number of bids in each user session, by `bidder start end`, in ms."""
    times: defaultdict[int, list[int]] = defaultdict(list)
    for bid in _bids(events):
        times[bid.bidder].append(bid.date_time)
    answer: dict[str, int] = {}
    for bidder, each in times.items():
        first = last = each[0]
        count = 0
        for time in each:
            if time - last > 10 * SECONDS:
                answer[f"{bidder} {first} {last}"] = count
                first, count = time, 0
            last, count = time, count + 1
        answer[f"{bidder} {first} {last}"] = count
    return answer


def q12(events: Events) -> Answer:
    """Return the number of bids of each bidder."""
    return dict(Counter(str(bid.bidder) for bid in _bids(events)))

"""Nexmark's queries give what the model says, in memory and on a broker; the model says what it should."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.nexmark import model, winning_bids
from benchmarks.nexmark.bidders import q12
from benchmarks.nexmark.events import Auction, Bid, Event, Person, topic_and_key
from benchmarks.nexmark.generator import BASE_TIME, generate, longest_auction
from benchmarks.nexmark.queries import QUERIES, Query, WrongAnswerError
from benchmarks.nexmark.running import TopicExistsError, fill, rows_behind, run_application
from streams import Topology
from streams.testing import TopologyTestDriver
from tests.support.depth import deep, times
from tests.support.logd_process import LogdProcess

RATE = 100
"""Events per second, so that few events make up several windows; in Nexmark it is 10,000."""
EVENTS = list(generate(times(3000) + 2000, seed=7, events_per_second=RATE))
WITH_AUCTIONS_LENGTH = {"q4": winning_bids.q4, "q6": winning_bids.q6, "q9": winning_bids.q9}


def topology_for_test(query: Query) -> Topology:
    if query.name in WITH_AUCTIONS_LENGTH:
        return WITH_AUCTIONS_LENGTH[query.name](longest_auction(RATE))
    return query.topology()


def outputs(topology: Topology, query: Query, events: list[Event]) -> list[tuple[Any, Any]]:
    with TopologyTestDriver(topology) as driver:
        inputs = {topic: driver.input_topic(topic) for topic in query.inputs}
        for event in events:
            topic, key = topic_and_key(event)
            if topic in inputs:
                inputs[topic].pipe_input(key, event, event.date_time)
        return driver.output_topic(query.output).read_key_values()


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_answers_as_the_model(query: Query) -> None:
    rows = outputs(topology_for_test(query), query, EVENTS)
    assert query.check(rows, EVENTS) > 1
    with pytest.raises(WrongAnswerError, match=rf"^{query.name}: \d+ of \d+ are wrong, first "):
        query.check(rows[:-1] if query.name in ("q0", "q1", "q2") else [], EVENTS)


def test_windows_of_processing_time_are_the_clocks() -> None:
    query, clock = QUERIES["q12"], itertools.count(0, 100)
    bids = [event for event in EVENTS if isinstance(event, Bid)]
    rows = outputs(q12(lambda: next(clock)), query, list(bids))
    windows = Counter(f"{bid.bidder} {number // 100 * 10_000}" for number, bid in enumerate(bids))
    assert dict(rows) == windows


@deep
def test_queries_answer_on_a_broker(logd: LogdProcess, tmp_path: Path) -> None:
    """Queries with a foreign-key join, and with two repartitioned stages of windows, answer on a broker."""
    queries = [QUERIES["q3"], QUERIES["q5"]]
    asyncio.run(fill(logd.bootstrap, queries, EVENTS))
    for query in queries:
        used = run_application(logd.bootstrap, query, tmp_path / query.name)
        assert query.check(asyncio.run(rows_behind(logd.bootstrap, query, 0)), EVENTS) > 1
        assert used.seconds > 0 and used.cpu_seconds > 0
    with pytest.raises(TopicExistsError, match="'persons' already"):
        asyncio.run(fill(logd.bootstrap, queries, EVENTS))


def test_events_are_of_nexmarks_kinds() -> None:
    events = list(generate(5000))
    assert events == list(generate(5000)) != list(generate(5000, seed=2))
    assert Counter(map(type, events)) == {Person: 100, Auction: 300, Bid: 4600}
    assert [event.date_time for event in events] == [BASE_TIME + number // 10 for number in range(5000)]
    auctions = [event for event in events if isinstance(event, Auction)]
    assert [auction.id for auction in auctions] == list(range(1000, 1300))
    longest = longest_auction().total_seconds() * 1000
    assert all(0 < auction.expires - auction.date_time <= longest for auction in auctions)
    of_hot_one = Counter(bid.auction for bid in events[-1000:] if isinstance(bid, Bid)).most_common(1)
    assert 0.4 < of_hot_one[0][1] / 920 < 0.6


def bid(auction: int, bidder: int, price: int, seconds: float) -> Bid:
    return Bid(auction, bidder, price, int(seconds * 1000), "")


def auction(id: int, seller: int, category: int, seconds: float, expires: float) -> Auction:
    return Auction(id, "", "", 0, 0, int(seconds * 1000), int(expires * 1000), seller, category, "")


def test_the_model_by_hand() -> None:
    person = Person(1, "Ada", "", "", "Bend", "OR", 1000, "")
    events: list[Event] = [
        person,
        auction(5, 1, 10, 2, 9),
        auction(6, 1, 11, 2, 4),
        bid(5, 7, 300, 3),
        bid(5, 8, 300, 3),  # no higher
        bid(6, 7, 100, 4),  # at its expiry
        bid(6, 7, 900, 4.001),  # too late
        bid(5, 8, 200, 9.5),  # too late
        auction(9, 1, 10, 11, 12),
        bid(6, 9, 100, 13.5),  # ends the window from 0, and is within bidder 9's session from
        bid(6, 9, 100, 23.5),  # here
        bid(6, 9, 100, 33.501),
    ]
    assert model.q3(events) == {
        id: {"name": "Ada", "city": "Bend", "state": "OR", "auction": id} for id in (5, 9)
    }
    assert {key: value["bid"]["bidder"] for key, value in model.q9(events).items()} == {5: 7, 6: 7}
    assert model.q4(events) == {10: 300.0, 11: 100.0}
    assert model.q6(events) == {1: 200.0}
    assert model.q5(events)[0] == {"auctions": [5], "bids": 3}
    assert model.q5(events)[4000] == {"auctions": [6], "bids": 3}
    assert max(model.q5(events)) == 22000
    assert [each["price"] for each in model.q7(events).values()] == [900, 100, 100]
    assert model.q8(events) == {"1 0": {"person": 1, "name": "Ada", "window": 0, "auctions": 2}}
    assert model.q11(events) == {
        "7 3000 4001": 3,
        "8 3000 9500": 2,
        "9 13500 23500": 2,
        "9 33501 33501": 1,
    }
    assert model.q12(events) == {"7": 3, "8": 2, "9": 3}

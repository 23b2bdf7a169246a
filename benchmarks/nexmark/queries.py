"""All queries: topology, the topics it reads, and how its output is read and checked against the model.

`millstream streams run benchmarks.nexmark.queries:q5` runs one on any cluster that has its topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from benchmarks.nexmark import model
from benchmarks.nexmark.bidders import q11, q12
from benchmarks.nexmark.events import AUCTIONS, BIDS, PERSONS, Event
from benchmarks.nexmark.hot_items import q5, q7
from benchmarks.nexmark.local_items import q3
from benchmarks.nexmark.model import Answer
from benchmarks.nexmark.new_users import q8
from benchmarks.nexmark.stateless import q0, q1, q2
from benchmarks.nexmark.winning_bids import q4, q6, q9
from streams import Topology

Rows: TypeAlias = Iterable[tuple[Any, Any]]
"""Keys and values of an output topic, in its order."""


class WrongAnswerError(Exception):
    """An error: a query's output is not the model's."""


def counted(rows: Rows) -> Answer:
    """Return the count of each row."""
    return Counter(model.row(key, msgspec.to_builtins(value)) for key, value in rows)


def last(rows: Rows) -> Answer:
    """Return the last value of each key; None deletes the key."""
    table: Answer = {}
    for key, value in rows:
        if value is None:
            table.pop(key, None)
        else:
            table[key] = msgspec.to_builtins(value)
    return table


def bids_of_bidders(rows: Rows) -> Answer:
    """Return each bidder's sum over all windows, from keys `bidder start`."""
    sums: Counter[str] = Counter()
    for key, bids in last(rows).items():
        sums[key.split()[0]] += bids
    return dict(sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query. `answer` converts its output to the form that `model` returns for the events."""

    name: str
    title: str
    topology: Callable[[], Topology]
    inputs: tuple[str, ...]
    answer: Callable[[Rows], Answer]
    model: Callable[[Sequence[Event]], Answer]

    @property
    def output(self) -> str:
        """The name of the output topic."""
        return f"nexmark-{self.name}"

    def check(self, rows: Rows, events: Sequence[Event]) -> int:
        """Compare an output with the model's. Return the number of compared rows. Raises WrongAnswerError."""
        actual, expected = self.answer(rows), self.model(events)
        if actual != expected:
            keys = [key for key in {**expected, **actual} if actual.get(key) != expected.get(key)]
            raise WrongAnswerError(
                f"{self.name}: {len(keys)} of {len(expected)} are wrong, first {keys[0]!r}: "
                f"{actual.get(keys[0])!r} instead of {expected.get(keys[0])!r}"
            )
        return len(expected)


def _query(
    title: str,
    topology: Callable[[], Topology],
    inputs: tuple[str, ...] = (BIDS,),
    answer: Callable[[Rows], Answer] = last,
) -> Query:
    name = topology.__name__
    return Query(
        name=name,
        title=title,
        topology=topology,
        inputs=inputs,
        answer=answer,
        model=getattr(model, name),
    )


QUERIES = {
    query.name: query
    for query in (
        _query("pass-through", q0, answer=counted),
        _query("currency conversion", q1, answer=counted),
        _query("selection", q2, answer=counted),
        _query("local items: foreign-key join", q3, (PERSONS, AUCTIONS)),
        _query("average price by category: stream join, grouped table", q4, (AUCTIONS, BIDS)),
        _query("hot items: hopping windows, on close", q5),
        _query("average price by seller: stream join, grouped table", q6, (AUCTIONS, BIDS)),
        _query("highest bids: tumbling windows, suppressed", q7),
        _query("new users: join of windowed tables", q8, (PERSONS, AUCTIONS)),
        _query("winning bids: stream join", q9, (AUCTIONS, BIDS)),
        _query("user sessions: session windows", q11),
        _query("bids by processing time: tumbling windows", q12, answer=bids_of_bidders),
    )
}
"""By name."""

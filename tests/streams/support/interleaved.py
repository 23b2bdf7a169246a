"""Topologies that instances run while they come and go (`interleavings`). Their tables do not depend on the
order in which partitions and inputs are read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streams import (
    JoinWindows,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    Windowed,
)
from streams.serdes import Long, Serde, String

HOUR_MS = 3_600_000
SPAN_MS = 5 * HOUR_MS
"""The times of records that come one after the other."""
NEVER_LATE_MS = 1000 * HOUR_MS
ROWS_PER_STEP = 40
KEYS = 12


class Row(NamedTuple):
    """A record of an input."""

    topic: str
    key: str
    value: int | None
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """`topology(prefix)` reads `inputs` and writes `tables`, with these serdes of their values.

    `row(random, number, deletes)`: a record, whose value is its number, and the row's number says its time.
    `last`: rows that come when all others are processed. `stores`: those to be compared. `only_once`: tables
    that are exact under exactly-once only, and the stores of the same names. `numbered`: a table that is told
    of 1, 2, 3, … per key.
    """

    topology: Callable[[str], Topology]
    inputs: Sequence[str]
    tables: Mapping[str, Serde[Any]]
    stores: Sequence[str]
    only_once: Collection[str]
    row: Callable[[random.Random, int, bool], Row]
    last: Sequence[Row] = ()
    numbered: str | None = None


# -- sums, counts and a join of tables


def tables(prefix: str) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    numbers, names = builder.stream(f"{prefix}-numbers"), builder.table(f"{prefix}-names")
    sums = numbers.group_by_key().reduce(lambda sum, number: sum + number, store="sums")
    sums.to_stream().to(f"{prefix}-sums")
    hours = numbers.group_by_key().windowed_by(TimeWindows(HOUR_MS, grace=NEVER_LATE_MS)).count()
    hours.to_stream(key=lambda key, count: f"{key.key}@{key.window.start}").to(
        f"{prefix}-hours", key_serde=str
    )
    named = sums.join(names, lambda sum, name: f"{sum} {name}")
    named.to_stream().to(f"{prefix}-named", value_serde=str)
    groups = numbers.group_by(lambda key, number: f"group {number % 7}")
    counts = groups.count(store=Materialized(name="counts", caching=False))
    counts.to_stream().to(f"{prefix}-counts")
    shares = names.group_by(lambda key, name: (f"share {name % 5}", name))
    shares.reduce(lambda sum, name: sum + name, lambda sum, name: sum - name, store="shares").to_stream().to(
        f"{prefix}-shares"
    )
    return builder.build()


def table_row(chance: random.Random, number: int, deletes: bool) -> Row:
    topic = chance.choice(("numbers", "numbers", "names"))
    # At least once, a deletion may go unsaid where a commit breaks off.
    deleted = topic == "names" and deletes and chance.random() < 0.2
    key, time = f"key {chance.randrange(KEYS)}", chance.randrange(SPAN_MS)
    return Row(topic, key, None if deleted else number, time)


TABLES = Work(
    topology=tables,
    inputs=("numbers", "names"),
    tables={"sums": Long(), "hours": Long(), "named": String(), "counts": Long(), "shares": Long()},
    stores=("sums", "counts", "shares"),
    only_once=("counts", "shares"),  # Behind a repartition topic a record may be counted twice.
    row=table_row,
    numbered="counts",
)


# -- windows, and joins of streams and by foreign keys


def windows(prefix: str) -> Topology:
    """Windows of a step's clicks close when clicks of the next one come, those of joins at the end."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    _count_clicks(prefix, builder.stream(f"{prefix}-clicks").group_by_key())
    numbers, names = builder.stream(f"{prefix}-numbers"), builder.stream(f"{prefix}-names")
    # As in Kafka Streams, what is behind stream time by more than that tells at once that it met nobody.
    always = JoinWindows.of(SPAN_MS, grace=NEVER_LATE_MS)
    _tell_pairs(numbers.left_join(names, _both, windows=always), f"{prefix}-left-pairs")
    _tell_pairs(numbers.outer_join(names, _both, windows=always), f"{prefix}-outer-pairs")
    # As above, a row that is added and deleted within a commit is not forwarded, though it may have joined.
    latest, named = (
        numbers.to_table(store="latest"),
        names.to_table(store=Materialized(name="named", caching=False)),
    )
    for name, join in {"foreign": latest.join, "foreign-left": latest.left_join}.items():
        joined: KTable[str, str] = join(named, _both, foreign_key=lambda number: f"key {number % KEYS}")
        joined.to_stream().to(f"{prefix}-{name}", value_serde=str)
    return builder.build()


def _count_clicks(prefix: str, clicks: KGroupedStream[str, int]) -> None:
    visits, grace = SessionWindows(HOUR_MS // 3, grace=2 * SPAN_MS), 2 * SPAN_MS
    store = Materialized(name="visits-store", retention=100 * NEVER_LATE_MS)
    _tell_windows(clicks.windowed_by(visits).count(store=store), f"{prefix}-visits")
    closing: dict[str, Any] = {
        "closed-visits": visits,
        "closed-hops": TimeWindows(HOUR_MS, advance=HOUR_MS // 3, grace=grace),
        "closed-slides": SlidingWindows(HOUR_MS // 3, grace=grace),
    }
    for name, each in closing.items():
        closed = clicks.windowed_by(each, emit_strategy="on_window_close").count()
        _tell_windows(closed, f"{prefix}-{name}")
    hours = clicks.windowed_by(TimeWindows(HOUR_MS, grace=grace)).count()
    _tell_windows(hours.suppress(Suppressed.until_window_closes()), f"{prefix}-final-hours")


def _tell_windows(counts: KTable[Windowed[str], int], topic: str) -> None:
    by_text = counts.to_stream(key=lambda key, count: f"{key.key}@{key.window.start}-{key.window.end}")
    by_text.to(topic, key_serde=str)


def _tell_pairs(pairs: KStream[str, str], topic: str) -> None:
    """Write each pair under a key of its own, since the order of pairs is open."""
    pairs.select_key(lambda key, pair: f"{key}: {pair}").to(topic, key_serde=str, value_serde=str)


def _both(one: int | None, other: int | None) -> str:
    return f"{one} {other}"


def window_row(chance: random.Random, number: int, deletes: bool) -> Row:
    """Deletions or not, stores are exact; the tables that may lack them are `only_once`."""
    topic = chance.choice(("clicks", "clicks", "numbers", "names"))
    deleted = topic == "names" and chance.random() < 0.2
    key, time = f"key {chance.randrange(KEYS)}", chance.randrange(SPAN_MS)
    if topic == "clicks":
        return Row(topic, key, number, time + number // ROWS_PER_STEP * NEVER_LATE_MS)
    return Row(topic, key if chance.random() < 0.7 else f"lone {number}", None if deleted else number, time)


INPUTS = ("clicks", "numbers", "names")
WINDOWS = Work(
    topology=windows,
    inputs=INPUTS,
    tables={
        **dict.fromkeys(("visits", "closed-visits", "closed-hops", "closed-slides", "final-hours"), Long()),
        **dict.fromkeys(("left-pairs", "outer-pairs", "foreign", "foreign-left"), String()),
    },
    stores=("visits-store", "latest", "named"),
    only_once=("visits", "foreign", "foreign-left"),
    row=window_row,
    # In all partitions, so that whatever waits in them for time is told.
    last=[Row(topic, f"end {n}", n, 50 * NEVER_LATE_MS) for n in range(KEYS) for topic in INPUTS],
)

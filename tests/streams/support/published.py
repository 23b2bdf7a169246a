"""The topologies that Kafka's own tests of streams try, as tests/java/Published.java has them and says.

`Scenario` is one of a script in golden/published: a line `scenario NAME PROGRAM NAME=VALUE...`, and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from streams import JoinWindows, KGroupedStream, KStream, KTable, Materialized, StreamsBuilder, Suppressed
from streams.topology import Topology

GOLDEN = Path(__file__).parents[1] / "golden" / "published"
Builder = StreamsBuilder
Table = KTable[str, str]
METHODS = {"inner": "join", "left": "left_join", "outer": "outer_join"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`group` is the script's name, that of Kafka's test class; `lines` are its steps and results."""

    group: str
    name: str
    program: str
    choices: dict[str, str]
    lines: list[str]

    @property
    def title(self) -> str:
        return f"{self.group}.{self.name}"

    def get(self, name: str, otherwise: str = "") -> str:
        return self.choices.get(name, otherwise)

    def ms(self, name: str) -> int:
        return int(self.get(name, "0"))

    def build(self) -> Topology:
        """From its inputs to `out`."""
        builder = StreamsBuilder(key_serde=str, value_serde=str)
        PROGRAMS[self.program](builder, self)
        return builder.build(topology_optimization="all" if "optimize" in self.choices else None)

    def store_of(self, how: str, name: str) -> Materialized | None:
        """Return how a table is stored, by this word; None for `plain`."""
        if how == "plain":
            return None
        history = timedelta(milliseconds=int(self.get("history", "300000")))
        return Materialized(
            name=name,
            key_serde=str,
            value_serde=str,
            caching=how != "uncached",
            history_retention=history if how == "versioned" else None,
        )

    def table(self, builder: Builder, topic: str, which: str) -> Table:
        """Kept as the value of this name says."""
        table: Table = builder.table(topic, store=self.store_of(self.get(which, "plain"), f"{topic}-rows"))
        return table.suppress(Suppressed.until_time_limit(10)) if self.get("suppress") == which else table


def scenarios() -> Iterator[Scenario]:
    """Yield all scenarios, by Kafka's test classes."""
    for path in sorted(GOLDEN.glob("*.txt")):
        for part in path.read_text().split("\nscenario ")[1:]:
            first, *lines = part.splitlines()
            name, program, *values = first.split(" ")
            choices = dict(value.split("=") for value in values)
            yield Scenario(group=path.stem, name=name, program=program, choices=choices, lines=lines)


def joiner(value: str | None, other: str | None) -> str:
    return f"{text(value)}+{text(other)}"


def text(value: str | None) -> str:
    """Return the value as Java concatenates it."""
    return "null" if value is None else value


def adder(key: str, value: str | None, so_far: str) -> str:
    return f"{so_far}+{text(value)}"


def remover(key: str, value: str | None, so_far: str) -> str:
    return f"{so_far}-{text(value)}"


def zero() -> str:
    return "0"


def tell(table: Table, choices: Scenario) -> None:
    """`below=group`: grouped by its own key, where `-` is an old value and `+` a new one."""
    if choices.get("below") == "group":
        by_key = table.group_by(lambda k, v: (k, v), key_serde=str, value_serde=str)
        by_key.aggregate(zero, adder, remover).to_stream().to("out")
    else:
        table.to_stream().to("out", value_serde=str)


def streams(b: Builder, choices: Scenario) -> None:
    left: KStream[str, str] = b.stream("in" if "self" in choices.choices else "l")
    right = left if "self" in choices.choices else b.stream("r")
    windows = JoinWindows(before=choices.ms("before"), after=choices.ms("after"), grace=choices.ms("grace"))
    if "rekeyed" in choices.choices:
        left, right = (stream.map(lambda k, v: (k, v)) for stream in (left, right))
    join = getattr(left, METHODS[choices.get("kind", "inner")])
    serdes = {"key_serde": str, "value_serde": str, "other_value_serde": str}
    join(right, joiner, windows=windows, **serdes).to("out", value_serde=str)


def joined(left: Table, right: Table, kind: str, store: Materialized | None = None) -> Table:
    both: Table = getattr(left, METHODS[kind])(right, joiner, store=store)
    return both


def tables(b: Builder, choices: Scenario) -> None:
    left, right = choices.table(b, "l", "left"), choices.table(b, "r", "right")
    store = choices.store_of(choices.get("store", "plain"), "joined")
    both = joined(left, right, choices.get("kind", "inner"), store)
    if "then" in choices.choices:
        both = joined(both, right, choices.get("then"))
    tell(both, choices)


def stream_and_table(b: Builder, choices: Scenario) -> None:
    stream: KStream[str, str] = b.stream("l")
    if "rekeyed" in choices.choices:
        stream = stream.map(lambda k, v: (k, v))
    table = choices.table(b, "r", "right")
    grace = choices.ms("grace") if "grace" in choices.choices else None
    join = getattr(stream, METHODS[choices.get("kind", "inner")])
    join(table, joiner, grace=grace, key_serde=str, value_serde=str).to("out", value_serde=str)


def foreign_key(value: str) -> str | None:
    parts = value.split("|")
    return None if len(parts) < 2 or parts[1] == "null" else parts[1]


def foreign(b: Builder, choices: Scenario) -> None:
    left = choices.table(b, "l", "left")
    right = left if "self" in choices.choices else choices.table(b, "r", "right")
    kind, store = choices.get("kind", "inner"), choices.store_of(choices.get("store", "uncached"), "joined")
    both: Table = getattr(left, METHODS[kind])(right, joiner, foreign_key=foreign_key, store=store)
    tell(both, choices)
    if "rejoin" in choices.choices:
        joined(both, left, kind).to_stream().to("out", value_serde=str)


def global_table(b: Builder, choices: Scenario) -> None:
    table = b.global_table("r")
    stream: KStream[str, str] = b.stream("l")
    by_value = choices.get("by", "key") == "value"
    join = getattr(stream, METHODS[choices.get("kind", "inner")])
    chosen = join(table, joiner, key_selector=(lambda k, v: None if v == "none" else v) if by_value else own)
    chosen.to("out", value_serde=str)


def own(key: str | None, value: str | None) -> str | None:
    return key


def is_even(value: str) -> bool:
    return value in ("2", "4")


def table(b: Builder, choices: Scenario) -> None:
    rows, store = choices.table(b, "in", "from"), choices.store_of(choices.get("store", "plain"), "derived")
    match choices.get("op", "source"):
        case "filter":
            rows = rows.filter(lambda k, v: is_even(v), store=store)
        case "filter-not":
            rows = rows.filter_not(lambda k, v: is_even(v), store=store)
        case "map":
            rows = rows.map_values(lambda v: v + "!", store=store)
    tell(rows, choices)


GROUPS: dict[str, Callable[[str, str], tuple[str | None, str]]] = {
    "key": lambda k, v: (k, v),
    "value": lambda k, v: (v, v),
    "first": lambda k, v: (v[:1], v),
    "letters": lambda k, v: (k[0], k[1]),
    "words": lambda k, v: (None if k == "null" else v, v),
}


def grouped(b: Builder, choices: Scenario) -> None:
    by: Any = GROUPS[choices.get("by", "value")]
    rows: Any = choices.table(b, "in", "from").group_by(by, key_serde=str, value_serde=str)
    store = choices.store_of(choices.get("store", "cached"), "groups")
    match choices.get("op", "aggregate"):
        case "count":
            table = rows.count().map_values(str)
        case "reduce":
            table = rows.reduce(lambda x, y: f"{x}+{y}", lambda x, y: f"{x}-{y}", store=store)
        case "replace":
            table = rows.aggregate(str, lambda k, v, a: a + v, lambda k, v, a: a.replace(v, ""), store=store)
        case _:
            table = rows.aggregate(zero, adder, remover, store=store)
    table.to_stream().to("out", value_serde=str)


def aggregated(b: Builder, choices: Scenario) -> None:
    stream: KStream[str, str] = b.stream("in")
    serdes: Any = {"key_serde": str, "value_serde": str}
    is_rekeyed = "rekeyed" in choices.choices
    rows: Any = stream.group_by(lambda k, v: v, **serdes) if is_rekeyed else stream.group_by_key(**serdes)
    store = choices.store_of(choices.get("store", "cached"), "sums")
    match choices.get("op", "aggregate"):
        case "count":
            tell(rows.count().map_values(str), choices)
        case "reduce":
            tell(rows.reduce(lambda x, y: None if y == "x" else f"{x}+{y}", store=store), choices)
        case _:
            add = lambda k, v, a: None if v == "x" else f"{text(a)}+{v}"  # noqa: E731
            tell(rows.aggregate(zero, add, store=store), choices)


def suppress(b: Builder, choices: Scenario) -> None:
    table = choices.table(b, "in", "from")
    suppression = Suppressed.until_time_limit(
        choices.ms("until"),
        max_records=choices.ms("records") if "records" in choices.choices else None,
        max_bytes=choices.ms("bytes") if "bytes" in choices.choices else None,
        when_full="shut_down" if choices.get("full") == "end" else "emit_early",
    )
    if choices.get("of", "counts") == "counts":
        counts = table.group_by(lambda k, v: (v, k), key_serde=str, value_serde=str).count()
        tell(counts.suppress(suppression).map_values(str), choices)
    else:
        tell(table.suppress(suppression), choices)


def cogroup(b: Builder, choices: Scenario) -> None:
    stream: KStream[str, str] = b.stream("in")
    is_rekeyed = "rekeyed" in choices.choices
    rows: KGroupedStream[str, str] = (
        stream.group_by(lambda k, v: k, key_serde=str, value_serde=str)
        if is_rekeyed
        else stream.group_by_key()
    )
    cogrouped = rows.cogroup(adder)
    if "same" in choices.choices:
        cogrouped = cogrouped.cogroup(rows, remover)
    elif "once" not in choices.choices:
        cogrouped = cogrouped.cogroup(b.stream("other").group_by_key(), remover)
    store = choices.store_of(choices.get("store", "cached"), "sums")
    tell(cogrouped.aggregate(zero, store=store, value_serde=str), choices)


def stateless(b: Builder, choices: Scenario) -> None:
    stream: KStream[str, str] = b.stream("l" if choices.get("op") == "merge" else "in")
    match choices.get("op"):
        case "merge":
            stream.merge(b.stream("r")).to("out")
        case "merge-self":
            marked = stream.filter_not(lambda k, v: is_even(v)).map_values(lambda v: v + "!")
            stream.filter(lambda k, v: is_even(v)).merge(marked).to("out", value_serde=str)
        case "repartition":
            stream.repartition().to("out")
        case "to-table":
            tell(stream.to_table(), choices)
        case "to-table-rekeyed":
            tell(stream.select_key(lambda k, v: v).to_table(key_serde=str, value_serde=str), choices)
        case "flat-map":
            stream.flat_map(words).to("out", key_serde=str, value_serde=str)
        case _:
            stream.flat_map_values(lambda v: v.split(",")).to("out", value_serde=str)


def words(key: str, value: str) -> list[tuple[str, str]]:
    return [(f"{word}{number}", word) for number, word in enumerate(value.split(","))]


PROGRAMS: dict[str, Callable[[Builder, Scenario], None]] = {
    "streams": streams,
    "tables": tables,
    "stream-table": stream_and_table,
    "foreign": foreign,
    "global": global_table,
    "table": table,
    "grouped": grouped,
    "aggregated": aggregated,
    "suppress": suppress,
    "cogroup": cogroup,
    "stateless": stateless,
}

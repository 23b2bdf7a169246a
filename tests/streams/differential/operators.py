"""The operators of plans: what each takes and gives, and how ours builds it.

Another operator is a line here and one in tests/java/Differential.java.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streams import (
    JoinWindows,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from streams.serdes import Long, Serde, SessionWindowed, String, TimeWindowed
from streams.state import StoreSpec
from tests.streams.differential import functions
from tests.streams.differential.functions import text
from tests.streams.differential.plan import Step
from tests.streams.differential.processors import Chooser, numberer, teller, transformer

RETENTION = 10_000_000
"""The retention of windowed stores that set one, in ms: longer than any plan lasts."""
SEGMENT = 5
"""The segment interval of versioned stores, in ms."""


def serde(kind: str) -> Serde[Any]:
    """Return the serde of a type in a plan."""
    if kind == "s":
        return String()
    if kind == "l":
        return Long()
    return SessionWindowed(String()) if kind == "sessions" else TimeWindowed(String(), int(kind))


def store(step: Step) -> Materialized | None:
    """Return the store that the plan gives the step, or None."""
    options = step["store"]
    if options is None:
        return None
    return Materialized(
        name=options["name"],
        caching=options["caching"],
        logging=options["logging"],
        retention=RETENTION if step.get("windowed") and options["retained"] else None,
        value_serde=serde(step["value"]),
        history_retention=options.get("history"),
        segment_interval=None if options.get("history") is None else SEGMENT,
    )


def serdes(kinds: Step) -> dict[str, Any]:
    """Return the serdes of a step's keys and values, as keywords."""
    return {"key_serde": serde(kinds["key"]), "value_serde": serde(kinds["value"])}


@dataclass(frozen=True, slots=True)
class Operator:
    """`takes`: kinds of the steps it is made of. `gives`: the kind of what it makes, "" for nothing.

    `build(builder, step, above, steps)`: ours; ``above`` is made already, of ``steps``. `functions`: those it
    picks from. `key`, `value`: the types of what it makes, those of the first step it takes if not given.
    `of_text`: it takes string keys (`k`), or keys and values (`kv`), only. `stored`: it takes a store, unless
    keys are windowed and it did not window them. `named`: it takes a name.
    """

    takes: tuple[str, ...]
    gives: str
    build: Callable[[StreamsBuilder, Step, list[Any], list[Step]], Any]
    functions: Mapping[str, Any] | None = None
    key: str = ""
    value: str = ""
    of_text: str = ""
    stored: bool = False
    named: bool = True


def _plain(method: str) -> Callable[..., Any]:
    """Ours: a method that takes a function and a name."""
    return lambda builder, step, above, steps: getattr(above[0], method)(
        OPERATORS[step["op"]].functions[step["f"]],  # type: ignore[index]
        name=step["name"],
    )


def _materialized(method: str) -> Callable[..., Any]:
    """Ours: a method that takes a function, a name and a store."""
    return lambda builder, step, above, steps: getattr(above[0], method)(
        OPERATORS[step["op"]].functions[step["f"]],  # type: ignore[index]
        name=step["name"],
        store=store(step),
    )


def _aggregate(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    aggregator = functions.AGGREGATORS[step["f"]]
    return above[0].aggregate(
        lambda: "i", aggregator, name=step["name"], store=store(step), value_serde=String()
    )


def _joined(method: str) -> Callable[..., Any]:
    return lambda builder, step, above, steps: getattr(above[0], method)(
        above[1], functions.JOINERS[step["f"]], grace=step.get("late"), name=step["name"], **serdes(steps[0])
    )


def _joined_foreign(method: str) -> Callable[..., Any]:
    return lambda builder, step, above, steps: getattr(above[0], method)(
        above[1],
        functions.JOINERS[step["f"]],
        foreign_key=functions.FOREIGN_KEYS[step["foreign"]],
        name=step["name"],
        store=store(step),
    )


def _group_by(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    return above[0].group_by(functions.SELECTORS[step["f"]], name=step["name"], **serdes(step))


def _to_stream_by(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    return above[0].to_stream(functions.SELECTORS[step["f"]], name=step["name"])


def _reduce_rows(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    adder = functions.REDUCERS[step["f"]]
    return above[0].reduce(adder, functions.UNDOERS[step["undo"]], name=step["name"], store=store(step))


def _aggregate_rows(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    undo = functions.UNDOERS[step["undo"]]
    return above[0].aggregate(
        lambda: "i",
        functions.AGGREGATORS[step["f"]],
        lambda key, value, so_far: undo(so_far, value),
        name=step["name"],
        store=store(step),
        value_serde=String(),
    )


def _windowed(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    size, grace = step["size"], step["grace"]
    windows: Any
    match step["windows"]:
        case "time":
            windows = TimeWindows(size, grace, advance=step["advance"])
        case "unlimited":
            windows = UnlimitedWindows(step["start"])
        case "sliding":
            windows = SlidingWindows(size, grace)
        case _:
            windows = SessionWindows(size, grace)
    windowed = above[0].windowed_by(windows)
    return windowed.emit_strategy("on_window_close") if step["final"] else windowed


def _aggregate_sessions(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    return above[0].aggregate(
        lambda: "i",
        functions.AGGREGATORS[step["f"]],
        lambda key, one, other: functions.short(f"{text(one)}&{text(other)}"),
        name=step["name"],
        store=store(step),
        value_serde=String(),
    )


def _joined_tables(method: str) -> Callable[..., Any]:
    return lambda builder, step, above, steps: getattr(above[0], method)(
        above[1], functions.JOINERS[step["f"]], name=step["name"], store=store(step)
    )


def _joined_streams(method: str) -> Callable[..., Any]:
    return lambda builder, step, above, steps: getattr(above[0], method)(
        above[1],
        functions.JOINERS[step["f"]],
        windows=JoinWindows(before=step["before"], after=step["after"], grace=step["grace"]),
        name=step["name"],
        other_value_serde=serde(steps[1]["value"]),
        **serdes(steps[0]),
    )


def _suppress(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    bytes, name = step.get("bytes"), step["name"]
    if step["wait"] is None:
        return above[0].suppress(Suppressed.until_window_closes(max_bytes=bytes, name=name))
    return above[0].suppress(
        Suppressed.until_time_limit(
            step["wait"],
            max_records=step["most"],
            max_bytes=bytes,
            when_full="shut_down" if step.get("ends") else "emit_early",
            name=name,
        )
    )


def _process(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    stores = []
    if step["store"] is not None:
        stores.append(step["store"]["name"])
        spec = StoreSpec(
            name=stores[0],
            kind="key_value",
            key_serde=String(),
            value_serde=String(),
            cached=step["store"]["caching"],
            logged=step["store"]["logging"],
        )
        builder.add_store(spec)
    return above[0].process(teller(step), stores=stores, name=step["name"])


def _split(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    predicate, named = functions.PREDICATES[step["f"]], step["named"]
    split = above[0].split(name=step["name"]).branch(predicate, name="-x" if named else None)
    return (
        split.default_branch(name="-rest" if named else None) if step["rest"] else split.no_default_branch()
    )


def _branch(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    return next(branch for name, branch in above[0].items() if name.endswith(step["branch"]))


def _cogroup(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    first, second = functions.AGGREGATORS[step["f"]], functions.AGGREGATORS[step["second"]]
    return above[0].cogroup(first).cogroup(above[1], second)


def _aggregate_cogroup(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    return above[0].aggregate(lambda: "i", name=step["name"], store=store(step), value_serde=String())


def _aggregate_cogroup_sessions(
    builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]
) -> Any:
    return above[0].aggregate(
        lambda: "i",
        lambda key, one, other: functions.short(f"{text(one)}&{text(other)}"),
        name=step["name"],
        store=store(step),
        value_serde=String(),
    )


def _transform_values(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    return above[0].transform_values(transformer(step), name=step["name"], store=store(step))


def _to_chosen(builder: StreamsBuilder, step: Step, above: list[Any], steps: list[Step]) -> Any:
    above[0].to(Chooser(step), name=step["name"], **serdes(steps[0]))


S, T, G, W, N, R = "stream", "table", "group", "windows", "sessions", "rows"
B, C, CW, CN = "branches", "cogroup", "cogroup windows", "cogroup sessions"
f = functions

OPERATORS: dict[str, Operator] = {
    "stream": Operator(
        (),
        S,
        lambda b, s, above, steps: b.stream(s["topics"], name=s["name"], **serdes(s)),
        key="s",
        value="s",
    ),
    "table": Operator(
        (),
        T,
        lambda b, s, above, steps: b.table(s["topics"][0], name=s["name"], store=store(s), **serdes(s)),
        key="s",
        value="s",
        stored=True,
    ),
    "filter": Operator((S,), S, _plain("filter"), f.PREDICATES),
    "filter_not": Operator((S,), S, _plain("filter_not"), f.PREDICATES),
    "map": Operator((S,), S, _plain("map"), f.PAIRS, key="s", value="s"),
    "map_values": Operator((S,), S, _plain("map_values"), f.MAPPERS, value="s"),
    "flat_map": Operator((S,), S, _plain("flat_map"), f.LISTS, key="s", value="s"),
    "flat_map_values": Operator((S,), S, _plain("flat_map_values"), f.VALUE_LISTS, value="s"),
    "select_key": Operator((S,), S, _plain("select_key"), f.SELECTORS, key="s"),
    "peek": Operator((S,), S, _plain("peek"), f.PREDICATES),
    "merge": Operator((S, S), S, lambda b, s, above, steps: above[0].merge(above[1], name=s["name"])),
    "process": Operator((S,), S, _process, key="s", value="s", of_text="k"),
    "join": Operator((S, T), S, _joined("join"), f.JOINERS, value="s", of_text="k"),
    "left_join": Operator((S, T), S, _joined("left_join"), f.JOINERS, value="s", of_text="k"),
    "group_by_key": Operator(
        (S,), G, lambda b, s, above, steps: above[0].group_by_key(name=s["name"], **serdes(s)), of_text="k"
    ),
    "group_by": Operator((S,), G, _group_by, f.SELECTORS, key="s"),
    "to_table": Operator(
        (S,),
        T,
        lambda b, s, above, steps: above[0].to_table(name=s["name"], store=store(s), **serdes(s)),
        of_text="k",
        stored=True,
    ),
    "windowed_by": Operator((G,), W, _windowed, named=False),
    "sessions_by": Operator((G,), N, _windowed, named=False),
    "count": Operator(
        (G,),
        T,
        lambda b, s, above, steps: above[0].count(name=s["name"], store=store(s)),
        value="l",
        stored=True,
    ),
    "reduce": Operator((G,), T, _materialized("reduce"), f.REDUCERS, of_text="kv", stored=True),
    "aggregate": Operator((G,), T, _aggregate, f.AGGREGATORS, value="s", stored=True),
    "windowed_count": Operator(
        (W,),
        T,
        lambda b, s, above, steps: above[0].count(name=s["name"], store=store(s)),
        value="l",
        stored=True,
    ),
    "windowed_reduce": Operator((W,), T, _materialized("reduce"), f.REDUCERS, of_text="kv", stored=True),
    "windowed_aggregate": Operator((W,), T, _aggregate, f.AGGREGATORS, value="s", stored=True),
    "session_count": Operator(
        (N,),
        T,
        lambda b, s, above, steps: above[0].count(name=s["name"], store=store(s)),
        value="l",
        stored=True,
    ),
    "session_reduce": Operator((N,), T, _materialized("reduce"), f.REDUCERS, of_text="kv", stored=True),
    "session_aggregate": Operator((N,), T, _aggregate_sessions, f.AGGREGATORS, value="s", stored=True),
    "foreign_join": Operator(
        (T, T), T, _joined_foreign("join"), f.JOINERS, value="s", of_text="k", stored=True
    ),
    "foreign_left_join": Operator(
        (T, T), T, _joined_foreign("left_join"), f.JOINERS, value="s", of_text="k", stored=True
    ),
    "table_join": Operator((T, T), T, _joined_tables("join"), f.JOINERS, value="s", of_text="k", stored=True),
    "table_left_join": Operator(
        (T, T), T, _joined_tables("left_join"), f.JOINERS, value="s", of_text="k", stored=True
    ),
    "table_outer_join": Operator(
        (T, T), T, _joined_tables("outer_join"), f.JOINERS, value="s", of_text="k", stored=True
    ),
    "table_filter": Operator((T,), T, _materialized("filter"), f.PREDICATES, stored=True),
    "table_filter_not": Operator((T,), T, _materialized("filter_not"), f.PREDICATES, stored=True),
    "table_map_values": Operator((T,), T, _materialized("map_values"), f.MAPPERS, value="s", stored=True),
    "to_stream": Operator((T,), S, lambda b, s, above, steps: above[0].to_stream(name=s["name"])),
    "to_stream_by": Operator((T,), S, _to_stream_by, f.SELECTORS, key="s"),
    "repartition": Operator(
        (S,),
        S,
        lambda b, s, above, steps: above[0].repartition(name=s["name"], **serdes(s)),
    ),
    "stream_join": Operator((S, S), S, _joined_streams("join"), f.JOINERS, value="s", of_text="k"),
    "stream_left_join": Operator((S, S), S, _joined_streams("left_join"), f.JOINERS, value="s", of_text="k"),
    "stream_outer_join": Operator(
        (S, S), S, _joined_streams("outer_join"), f.JOINERS, value="s", of_text="k"
    ),
    "table_group_by": Operator(
        (T,),
        R,
        lambda b, s, above, steps: above[0].group_by(f.PAIRS[s["f"]], name=s["name"], **serdes(s)),
        f.PAIRS,
        key="s",
        value="s",
    ),
    "count_rows": Operator(
        (R,),
        T,
        lambda b, s, above, steps: above[0].count(name=s["name"], store=store(s)),
        value="l",
        stored=True,
    ),
    "reduce_rows": Operator((R,), T, _reduce_rows, f.REDUCERS, stored=True),
    "aggregate_rows": Operator((R,), T, _aggregate_rows, f.AGGREGATORS, stored=True),
    "suppress": Operator((T,), T, _suppress),
    "table_transform_values": Operator((T,), T, _transform_values, f.MAPPERS, value="s", stored=True),
    "process_values": Operator(
        (S,), S, lambda b, s, above, steps: above[0].process_values(numberer, name=s["name"]), value="s"
    ),
    "split": Operator((S,), B, _split, f.PREDICATES),
    "branch": Operator((B,), S, _branch, named=False),
    "cogroup": Operator((G, G), C, _cogroup, f.AGGREGATORS, value="s", named=False),
    "cogroup_windowed_by": Operator((C,), CW, _windowed, named=False),
    "cogroup_sessions_by": Operator((C,), CN, _windowed, named=False),
    "cogroup_aggregate": Operator((C,), T, _aggregate_cogroup, value="s", stored=True),
    "cogroup_windowed_aggregate": Operator((CW,), T, _aggregate_cogroup, value="s", stored=True),
    "cogroup_session_aggregate": Operator((CN,), T, _aggregate_cogroup_sessions, value="s", stored=True),
    "to_chosen": Operator((S,), "", _to_chosen, f.PREDICATES),
    "to": Operator(
        (S,), "", lambda b, s, above, steps: above[0].to(s["topics"][0], name=s["name"], **serdes(steps[0]))
    ),
}

"""The rules of windows held to Kafka's own: scripts in golden/windows, with what its test driver wrote.

tests/java/Windows.java plays them and says how they read; with REWRITE=1 in the environment they are written
again. Scripts of random records are played by both, too.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, assert_type

import pytest

from streams import (
    CogroupedKStream,
    KGroupedStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    UnlimitedWindows,
    Windowed,
)
from streams.testing import TopologyTestDriver
from tests.support import depth, java

GOLDEN = Path(__file__).parents[1] / "golden" / "windows"
START = 3
"""Where the wall clock begins."""


def words_of(script: str) -> dict[str, str]:
    """Return the options in the script's line that begins with `windows`."""
    line = next(line for line in script.splitlines() if line.startswith("windows "))
    _, kind, *values = line.split(" ")
    return {"kind": kind, **dict(value.split("=") for value in values)}


def windows_of(want: dict[str, str]) -> Any:
    times = {name: int(value) for name, value in want.items() if value.isdigit()}
    grace = times.get("grace", 0)
    match want["kind"]:
        case "tumbling":
            return TimeWindows(times["size"], grace=grace)
        case "hopping":
            return TimeWindows(times["size"], advance=times["advance"], grace=grace)
        case "sliding":
            return SlidingWindows(times["diff"], grace=grace)
        case "session":
            return SessionWindows(times["gap"], grace=grace)
        case kind:
            assert kind == "unlimited"
            return UnlimitedWindows(times["start"])


def text(value: str | None) -> str:
    """Return the value as Java concatenates it."""
    return "null" if value is None else value


class Functions:
    """The functions of a script's aggregation: `Wanted` in tests/java/Windows.java."""

    def __init__(self, want: dict[str, str]) -> None:
        self.nulls = want.get("nulls", "").split(",")

    def begin(self) -> str | None:
        return None if "init" in self.nulls else ""

    def add(self, result: str | None, value: str | None) -> str | None:
        ends = value is not None and value.endswith("0")
        return None if ends and "add" in self.nulls else text(result) + text(value)

    def merge(self, one: str | None, other: str | None) -> str | None:
        is_odd = len(text(one) + text(other)) % 2 == 1
        return None if is_odd and "merge" in self.nulls else f"{text(one)}|{text(other)}"

    def merger(self, want: dict[str, str]) -> list[Any]:
        """Return the session merger as a list, empty for other windows."""
        return [lambda k, x, y: self.merge(x, y)] if want["kind"] == "session" else []


def store_of(want: dict[str, str], name: str = "store") -> Materialized:
    retention = int(want["retention"]) if "retention" in want else None
    return Materialized(name=name, caching=want.get("cached") != "false", retention=retention)


def cogrouped(
    builder: StreamsBuilder, grouped: KGroupedStream[str, str], call: Functions
) -> CogroupedKStream[str, Any]:
    both: CogroupedKStream[str, Any] = grouped.cogroup(lambda k, v, a: call.add(a, v))
    return both.cogroup(builder.stream("other").group_by_key(), lambda k, v, a: f"{text(call.add(a, v))}*")


def aggregated(
    grouped: KGroupedStream[str, str], want: dict[str, str], name: str = "store"
) -> KTable[Any, Any]:
    call = Functions(want)
    windows: Any = grouped.windowed_by(windows_of(want))
    windows = windows.emit_strategy(f"on_window_{want.get('emit', 'update')}")
    store = store_of(want, name)
    table: KTable[Any, Any]
    match want.get("op", "aggregate"):
        case "count":
            table = windows.count(store=store).map_values(str)
        case "reduce":
            table = windows.reduce(call.add, store=store)
        case _:
            table = windows.aggregate(
                call.begin,
                lambda k, v, a: call.add(a, v),
                *call.merger(want),
                value_serde=str,
                store=store,
            )
    return table


def read(word: str) -> str | None:
    return None if word == "-" else word


def named(key: Windowed[str]) -> str:
    return f"{key.key}@{key.window.start}-{key.window.end}"


JOINS = {"inner": "join", "left": "left_join", "outer": "outer_join"}


def build(builder: StreamsBuilder, want: dict[str, str]) -> None:
    """From `in`, and `other` where streams are grouped together, to `out`."""
    call = Functions(want)
    grouped: KGroupedStream[str, str] = builder.stream("in").group_by_key()
    if want["kind"] == "plain":
        table: KTable[Any, Any] = cogrouped(builder, grouped, call).aggregate(
            call.begin, value_serde=str, store=store_of(want)
        )
    elif want.get("cogroup") == "true":
        windows: Any = cogrouped(builder, grouped, call).windowed_by(windows_of(want))
        table = windows.aggregate(call.begin, *call.merger(want), value_serde=str, store=store_of(want))
    else:
        table = aggregated(grouped, want)
    if "joined" in want:
        other = aggregated(builder.stream("other").group_by_key(), want, "store-2")
        table = getattr(table, JOINS[want["joined"]])(other, lambda x, y: f"{text(x)}%{text(y)}")
    if "suppress" in want:
        table = table.suppress(Suppressed.until_window_closes())
    if want["kind"] == "plain":
        table.to_stream().to("out")
    elif want.get("below") == "group":
        again = table.group_by(lambda k, v: (k.key, v), key_serde=str, value_serde=str)
        again.aggregate(str, lambda k, v, a: f"{a}+{v}", lambda k, v, a: f"{a}-{v}").to_stream().to("out")
    else:
        table.to_stream().map(lambda k, v: (named(k), v)).to("out", key_serde=str, value_serde=str)


def played(script: str) -> Iterator[str]:
    """Yield the script with the records that ours writes."""
    want = words_of(script)
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    build(builder, want)
    with TopologyTestDriver(
        builder, start=START, windowed_emit_interval_ms=int(want.get("interval", 0))
    ) as driver:
        numbers = itertools.count()
        for line in script.splitlines():
            if line.startswith("->"):
                continue
            yield line
            match line.split(" "):
                case ["pipe", key, value, timestamp]:
                    headers = (("n", b"%d" % next(numbers)),)
                    driver.input_topic("in").pipe_input(read(key), read(value), int(timestamp), headers)
                case ["pipe2", key, value, timestamp]:
                    headers = (("n", b"%d" % next(numbers)),)
                    driver.input_topic("other").pipe_input(read(key), read(value), int(timestamp), headers)
                case ["wall", by]:
                    driver.advance_wall_clock(int(by))
            for record in driver.output_topic("out").read_all():
                value = "-" if record.value is None else record.value or "''"
                whose = "".join(f" #{number.decode()}" for _, number in record.headers if number)
                yield f"-> {record.key} {value} {record.timestamp}{whose}"


def test_types_flow_through_windows() -> None:
    def add(key: str, value: float, total: int) -> int:
        return total + round(value)

    def merge(key: str, one: int, other: int) -> int:
        return one + other

    grouped: KGroupedStream[str, float]
    grouped = StreamsBuilder(key_serde=str, value_serde=float).stream("in").group_by_key()
    assert_type(grouped.count(), KTable[str, int])
    assert_type(grouped.windowed_by(TimeWindows(10)).count(), KTable[Windowed[str], int])
    sessions = grouped.windowed_by(SessionWindows(10), emit_strategy="on_window_close")
    assert_type(sessions.reduce(max), KTable[Windowed[str], float])
    assert_type(sessions.aggregate(int, add, merge, value_serde=int), KTable[Windowed[str], int])


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: TimeWindows(10, advance=11), "advance is 11, it must be longer than 0, and at most 10"),
        (lambda: TimeWindows(10, advance=0), "advance is 0"),
        (lambda: SlidingWindows(-1), "time_difference is -1, it must not be negative"),
        (lambda: SessionWindows(-1), "inactivity_gap is -1, it must not be negative"),
        (lambda: SessionWindows(1, grace=-1), "SessionWindows: grace is -1"),
        (lambda: UnlimitedWindows(-1), "start is -1, it must not be before 1970"),
        (lambda: grouping().windowed_by(10), "takes one of TimeWindows, SlidingWindows, Session.*not 10"),
        (lambda: grouping().windowed_by(UnlimitedWindows(), emit_strategy="on_window_close"), "never close"),
        (
            lambda: grouping().windowed_by(TimeWindows(1)).emit_strategy("late"),
            "it may be on_window_update or",
        ),
        (lambda: counted(SessionWindows(10, grace=5), 14), "windows and grace need at least 15 ms"),
        (lambda: counted(SlidingWindows(10, grace=5), 24), "windows and grace need at least 25 ms"),
        (lambda: grouping().cogroup(max).cogroup(grouping().windowed_by(TimeWindows(1)), max), "takes a KGr"),
    ],
)
def test_what_cannot_be_is_said_at_once(build: Callable[[], object], says: str) -> None:
    with pytest.raises(TopologyError, match=says):
        build()


def grouping() -> Any:
    return StreamsBuilder(key_serde=str, value_serde=str).stream("in").group_by_key()


def counted(windows: Any, retention: int) -> object:
    return grouping().windowed_by(windows).count(store=Materialized(retention=retention))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_ours_are_kafkas(path: Path) -> None:
    script = path.read_text()
    assert list(played(script)) == script.splitlines()


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(kafka_state: str) -> None:
    paths = sorted(GOLDEN.glob("*.txt"))
    wrote = java.run_sections("Windows", kafka_state, *map(str, paths))
    if os.environ.get("REWRITE"):
        for name, script in wrote.items():
            (GOLDEN / f"{name}.txt").write_text(script)
    assert wrote == {path.stem: path.read_text() for path in paths}


def random_script(number: int) -> str:
    """Return a script with one kind of windows, and records whose times vary, now and then far up."""
    dice = random.Random(number)
    size = dice.choice([1, 5, 10, 30])
    kind, span = dice.choice(
        [
            ("tumbling", f"size={size}"),
            ("hopping", f"size={size} advance={dice.randint(1, size)}"),
            ("sliding", f"diff={size}"),
            ("session", f"gap={dice.choice([0, size])}"),
            ("session", f"gap={dice.choice([0, size])}"),
            ("unlimited", f"start={dice.choice([0, 50])}"),
        ]
    )
    grace = dice.choice([0, 0, size // 2, 3 * size])
    emit = "update" if kind == "unlimited" else dice.choice(["update", "update", "close"])
    lines = [
        f"windows {kind} {span} grace={grace} op={dice.choice(['count', 'reduce', 'aggregate'])} "
        f"cached={dice.choice(['true', 'false'])} emit={emit} interval={dice.choice([0, 0, 20])} "
        f"below={dice.choice(['stream', 'stream', 'group'])}"
    ]
    if dice.random() < 0.3:
        lines[0] += f" nulls={','.join(dice.sample(['init', 'add', 'merge'], dice.randint(1, 3)))}"
    time = dice.choice([0, 0, 1000])
    for step in range(dice.randint(5, 60)):
        time += dice.choice([0, 1, 1, size // 2, size, size, 2 * size, 5 * size])
        if dice.random() < 0.03:
            time += dice.choice([100, 70_000, 200_000])
        at = max(0, time - dice.choice([0, 0, 0, 1, size // 2, size, dice.randint(0, 4 * size + grace)]))
        key, value = dice.choice(["a", "a", "b", "-" if dice.random() < 0.2 else "c"]), f"v{step}"
        lines.append(f"pipe {key} {'-' if dice.random() < 0.04 else value} {at}")
        if dice.random() < 0.1:
            lines.append(f"wall {dice.choice([1, 10, 25])}")
    return "\n".join(lines) + "\n"


def random_script_of_two(number: int) -> str:
    """Return a script of two streams whose times diverge, aggregated together, or each alone and then joined.

    Without a cache windows are past retention for good. With one, Kafka finds them for as long as they are in
    the cache, and ours until their segment goes, so times do not go that far.
    """
    dice = random.Random(number)
    size, cached = dice.choice([5, 10, 30]), dice.choice([True, False])
    kinds = [("tumbling", f"size={size}"), ("sliding", f"diff={size}"), ("session", f"gap={size}")]
    how = dice.choice(["cogroup=true", *(f"joined={kind}" for kind in JOINS)])
    if how != "cogroup=true":
        kinds.append(("hopping", f"size={size} advance={dice.randint(1, size)}"))
    kind, span = dice.choice(kinds)
    lines = [
        f"windows {kind} {span} grace={dice.choice([0, size // 2, 3 * size])} {how} "
        f"cached={str(cached).lower()} below={dice.choice(['stream', 'stream', 'group'])}"
    ]
    times = [0, 0]
    for step in range(dice.randint(5, 50)):
        which = dice.choice([0, 1])
        times[which] += dice.choice([0, 1, 1, size // 2, size, 2 * size])
        if dice.random() < 0.08:
            times[which] += dice.choice([100, 1000] if cached else [100, 1000, 70_000])
        if dice.random() < 0.25:
            times[which] = times[1 - which]
        at = max(0, times[which] - dice.choice([0, 0, 1, size // 2, size]))
        lines.append(f"{('pipe', 'pipe2')[which]} {dice.choice('aab')} v{step} {at}")
    return "\n".join(lines) + "\n"


RANDOM_SCRIPTS = 80


@java.needs_jar("kafka-streams-test-utils")
@pytest.mark.parametrize("script", [random_script, random_script_of_two])
def test_ours_do_with_random_records_what_kafkas_do(
    tmp_path: Path, kafka_state: str, script: Callable[[int], str]
) -> None:
    (tmp_path / "scripts").mkdir()
    paths = [tmp_path / "scripts" / f"{number}.txt" for number in range(depth.times(RANDOM_SCRIPTS))]
    for number, path in enumerate(paths):
        path.write_text(script(number))
    theirs = java.run_sections("Windows", kafka_state, *map(str, paths))
    differ = [path.stem for path in paths if list(played(path.read_text())) != theirs[path.stem].splitlines()]
    assert not differ, "\n".join(told_apart(theirs[differ[0]]))


def told_apart(theirs: str) -> Iterator[str]:
    """Kafka's script up to the first step in which ours writes something else, and what that is."""
    for ours, line in zip_longest(played(theirs), theirs.splitlines()):
        yield line or ""
        if ours != line:
            yield f"ours: {ours}"
            return

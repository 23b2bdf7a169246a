"""The rules of windows held to Kafka's own: scripts in golden/windows, with what its test driver wrote.

tests/java/Windows.java plays them and says how they read; with REWRITE=1 in the environment they are written
anew. Scripts of random records are played by both, too.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from streams import (
    KGroupedStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)
from streams.testing import TopologyTestDriver
from tests.support import depth, java

GOLDEN = Path(__file__).parent / "golden" / "windows"
START = 3
"""Where the wall clock begins."""


def wanted(script: str) -> dict[str, str]:
    """What the line says that begins with `windows`."""
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
    """As Java puts strings together."""
    return "null" if value is None else value


def aggregated(grouped: KGroupedStream[str, str], want: dict[str, str]) -> KTable[Any, Any]:
    windows: Any = grouped.windowed_by(windows_of(want))
    windows = windows.emit_strategy(f"on_window_{want.get('emit', 'update')}")
    retention = int(want["retention"]) if "retention" in want else None
    kept = Materialized(name="store", caching=want.get("cached") != "false", retention=retention)
    table: KTable[Any, Any]
    match want.get("op", "aggregate"):
        case "count":
            table = windows.count(store=kept).map_values(str)
        case "reduce":
            table = windows.reduce(lambda x, y: text(x) + text(y), store=kept)
        case _:
            merger = [lambda k, x, y: f"{x}|{y}"] if want["kind"] == "session" else []
            table = windows.aggregate(str, lambda k, v, a: a + text(v), *merger, value_serde=str, store=kept)
    return table


def read(word: str) -> str | None:
    return None if word == "-" else word


def named(key: Windowed[str]) -> str:
    return f"{key.key}@{key.window.start}-{key.window.end}"


def played(script: str) -> Iterator[str]:
    """The script with the records ours writes."""
    want = wanted(script)
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    table = aggregated(builder.stream("in").group_by_key(), want)
    table.to_stream().map(lambda k, v: (named(k), v)).to("out", key_serde=str, value_serde=str)
    with TopologyTestDriver(
        builder, start=START, windowed_emit_interval_ms=int(want.get("interval", 0))
    ) as driver:
        for line in script.splitlines():
            if line.startswith("->"):
                continue
            yield line
            match line.split(" "):
                case ["pipe", key, value, timestamp]:
                    records = driver.input_topic("in")
                    records.pipe_input(read(key), read(value), int(timestamp))
                case ["wall", by]:
                    driver.advance_wall_clock(int(by))
            for record in driver.output_topic("out").read_all():
                value = "-" if record.value is None else record.value or "''"
                yield f"-> {record.key} {value} {record.timestamp}"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_ours_are_kafkas(path: Path) -> None:
    script = path.read_text()
    assert list(played(script)) == script.splitlines()


@java.needs_jar("kafka-streams-test-utils")
def test_kafkas_are_these(tmp_path: Path) -> None:
    paths = sorted(GOLDEN.glob("*.txt"))
    wrote = java.run_sections("Windows", str(tmp_path), *map(str, paths))
    if os.environ.get("REWRITE"):
        for name, script in wrote.items():
            (GOLDEN / f"{name}.txt").write_text(script)
    assert wrote == {path.stem: path.read_text() for path in paths}


def random_script(number: int) -> str:
    """One kind of windows, and records whose times go up and down, now and then far up."""
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
        f"cached={dice.choice(['true', 'false'])} emit={emit} interval={dice.choice([0, 0, 20])}"
    ]
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


RANDOM_SCRIPTS = 120


@java.needs_jar("kafka-streams-test-utils")
def test_ours_do_with_random_records_what_kafkas_do(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    paths = [tmp_path / "scripts" / f"{number}.txt" for number in range(depth.times(RANDOM_SCRIPTS))]
    for number, path in enumerate(paths):
        path.write_text(random_script(number))
    theirs = java.run_sections("Windows", str(tmp_path / "state"), *map(str, paths))
    differ = [path.stem for path in paths if list(played(path.read_text())) != theirs[path.stem].splitlines()]
    assert not differ, "\n".join(told_apart(theirs[differ[0]]))


def told_apart(theirs: str) -> Iterator[str]:
    """Kafka's script up to the first step in which ours writes something else, and what that is."""
    for ours, line in zip_longest(played(theirs), theirs.splitlines()):
        yield line or ""
        if ours != line:
            yield f"ours: {ours}"
            return

"""The rules of streams on a live `logd`: what Kafka's test driver wrote, at least once and exactly once.

`live_rules` says how they are played, and which comparison a case has: all are played step by step, those
with one input also at once. test_rules.py, test_windows.py, test_versioned.py and test_published.py play the
same scripts without a broker, and have Kafka write them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from streams import StreamsBuilder
from tests.streams.dsl import test_rules, test_versioned, test_windows
from tests.streams.support.live_rules import Case, Headers, Step, play_at_once, play_step_by_step, together
from tests.streams.support.published import scenarios
from tests.streams.support.running import NewName, run
from tests.support import depth
from tests.support.logd_process import LogdProcess

DEPEND_ON_COMMITS = {
    *("grouped-table", "grouped-table-reduce", "grouped-versions", "suppress-records"),
    *("nulls-grouped-table", "nulls-grouped-table-reduce"),
    *("session-cached", "session-count", "session-group-cached", "session-nulls-everywhere"),
}
"""Scripts whose result depends on each update: added up as strings, filling a buffer, or of merged sessions.
A cached table forwards fewer updates.
"""
SECONDS = 400
"""For all cases, on a machine that has much else to do."""
RULES = sorted(test_rules.PROGRAMS)
WINDOWS = sorted(path.stem for path in test_windows.GOLDEN.glob("[a-z]*.txt"))
KAFKAS_WINDOWS = sorted(path.stem for path in test_windows.GOLDEN.glob("[A-Z]*.update.txt"))
"""Kafka's own tests that write each update; some of them are played at once."""
TITLE = 90
"""A scenario with a longer name would have topics with longer ones than Kafka allows."""
VERSIONED = sorted(test_versioned.PROGRAMS.keys() - {"store"})
SAMPLE = (
    *(
        "rule-grouped-table",
        "rule-branches",
        "rule-suppress-window",
        "rule-global-join",
        "rule-counts-grouped",
    ),
    *("windows-session-reduce", "windows-tumbling-nulls", "windows-cogroup-session"),
)
"""Short ones of every kind."""
LEFT_OUT = {"suppress-bytes": "the length of its topic's name is counted, and is another here"}
"""Rules that have another result on a broker shared by all, with why."""
TELL_LAST = {
    *("hopping-group", "session-group", "session-group-cached", "sliding-group"),
    *("hopping-nulls", "session-reduce-nulls"),
}
"""Scripts of windows with a cached table after a repartition topic, to which a step sends several records."""


def read(word: str) -> str | None:
    return None if word == "-" else word


def piped(
    topic: str, key: str, value: str, timestamp: str, wrote: Sequence[str], headers: Headers = ()
) -> Step:
    return Step(topic, read(key), read(value), int(timestamp), headers, 0, wrote)


def rule(name: str) -> Case:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    test_rules.PROGRAMS[name](builder)
    return Case(
        name=f"rule-{name}",
        topology=builder.build(),
        steps=list(rule_steps((test_rules.RULES / f"{name}.txt").read_text())),
        depends_on_commits=name in DEPEND_ON_COMMITS,
        outer_join_emit_ms=1000 if name.endswith("-throttled") else 0,
    )


def rule_steps(script: str) -> Iterator[Step]:
    for line, wrote in test_rules.steps(script):
        match line.split(" "):
            case ["pipe", topic, key, value, timestamp]:
                yield piped(topic, key, value, timestamp, wrote)
            case ["wall", by]:
                yield Step(None, None, None, 0, (), int(by), wrote)


def versioned(name: str) -> Case:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    test_versioned.PROGRAMS[name](builder)
    return Case(
        name=f"versioned-{name}",
        topology=builder.build(),
        steps=list(rule_steps((test_versioned.SCRIPTS / f"{name}.txt").read_text())),
        depends_on_commits=name in DEPEND_ON_COMMITS,
    )


def windows(name: str) -> Case:
    script = (test_windows.GOLDEN / f"{name}.txt").read_text()
    want = test_windows.words_of(script)
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    test_windows.build(builder, want)
    return Case(
        name=f"windows-{name}",
        topology=builder.build(),
        steps=list(window_steps(script)),
        windowed_emit_ms=int(want.get("interval", 0)),
        tells_headers=True,
        tells_last=name in TELL_LAST,
        depends_on_commits=name in DEPEND_ON_COMMITS,
    )


def window_steps(script: str) -> Iterator[Step]:
    numbers = itertools.count()
    for line, wrote in test_rules.steps(script):
        match line.split(" "):
            case [("pipe" | "pipe2") as word, key, value, timestamp]:
                headers = (("n", b"%d" % next(numbers)),)
                yield piped("in" if word == "pipe" else "other", key, value, timestamp, wrote, headers)
            case ["wall", by]:
                yield Step(None, None, None, 0, (), int(by), wrote)


def published() -> Iterator[Case]:
    """Yield the scenarios of Kafka's own tests that have one input and write each update."""
    for scenario in scenarios():
        topology = scenario.build()
        inputs = {line.split(" ")[1] for line in scenario.lines if line.startswith("pipe ")}
        is_cached = any(spec.cached for spec in topology.stores.values())
        if len(inputs) == 1 and not is_cached and len(scenario.title) < TITLE:
            steps = list(published_steps("\n".join(scenario.lines)))
            yield Case(name=scenario.title, topology=topology, steps=steps, tells_headers=True)


def published_steps(script: str) -> Iterator[Step]:
    numbers = itertools.count()
    for line, wrote in test_rules.steps(script):
        match line.split(" "):
            case ["pipe", topic, key, value, timestamp]:
                headers = (("n", b"%d" % next(numbers)),)
                yield piped(topic, key, value, timestamp, wrote, headers)


def cases() -> Iterator[Case]:
    yield from map(rule, (name for name in RULES if name not in LEFT_OUT))
    yield from map(windows, WINDOWS)


@depth.deep
@pytest.mark.parametrize("guarantee", depth.first(1, ["at_least_once", "exactly_once_v2"]))
async def test_a_sample_is_kafkas(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch, guarantee: Any
) -> None:
    chosen = [case for case in cases() if case.name in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    settings = {"processing_guarantee": guarantee}
    await play_step_by_step(logd.bootstrap, new_name("live"), tmp_path, chosen, monkeypatch, **settings)


@depth.deep
def test_all_are_kafkas_step_by_step(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole() -> None:
        for number, chosen in enumerate(together(cases())):
            folder = tmp_path / str(number)
            await play_step_by_step(logd.bootstrap, new_name("live"), folder, chosen, monkeypatch)

    run(whole, SECONDS)


@depth.deep
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
async def test_versioned_tables_are_kafkas_step_by_step(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch, guarantee: Any
) -> None:
    chosen, settings = list(map(versioned, VERSIONED)), {"processing_guarantee": guarantee}
    await play_step_by_step(logd.bootstrap, new_name("live"), tmp_path, chosen, monkeypatch, **settings)


@pytest.mark.parametrize("guarantee", depth.first(1, ["exactly_once_v2", "at_least_once"]))
async def test_those_with_one_input_are_kafkas_at_once(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: Any
) -> None:
    everything = itertools.chain(cases(), map(versioned, VERSIONED))
    fitting = [case for case in everything if case.fits_at_once]
    settings = {"processing_guarantee": guarantee}
    for number, chosen in enumerate(together(fitting)):
        folder = tmp_path / str(number)
        await play_at_once(logd.bootstrap, new_name("live"), folder, chosen, **settings)


@depth.deep
async def test_some_of_kafkas_own_scenarios_are_theirs_at_once(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    some = itertools.chain(itertools.islice(published(), 0, None, 3), map(windows, KAFKAS_WINDOWS[::3]))
    chosen = [case for case in some if case.fits_at_once]
    assert len(chosen) > 30
    await play_at_once(logd.bootstrap, new_name("live"), tmp_path, chosen)

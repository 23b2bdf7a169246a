"""The names and lengths of windows that a topology accepts and refuses, compared with Kafka's.

tests/java/Refusals.java prints the lines in golden/refusals; with REWRITE=1 in the environment they are
written again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from streams import (
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
    TopologyError,
    UnlimitedWindows,
)
from streams.state import StoreSpec
from tests.support import java

GOLDEN = Path(__file__).parents[1] / "golden" / "refusals"
Uses = dict[str, Callable[[StreamsBuilder[str, str], str], object]]

USES: Uses = {
    "store": lambda b, n: b.stream("t").group_by_key().count(store=n),
    "table-store": lambda b, n: b.table("t", store=Materialized(name=n)),
    "global-store": lambda b, n: b.global_table("t", store=n),
    "consumed": lambda b, n: b.stream("t", name=n),
    "filter": lambda b, n: b.stream("t").filter(lambda k, v: True, name=n),
    "produced": lambda b, n: b.stream("t").to("o", name=n),
    "grouped": lambda b, n: b.stream("t").group_by_key(Grouped(name=n)),
    "joined": lambda b, n: b.stream("t").join(b.table("u"), lambda x, y: x, Joined(name=n)),
    "stream-joined": lambda b, n: b.stream("t").join(
        b.stream("u"), lambda x, y: x, StreamJoined(name=n, store="s"), windows=JoinWindows.of(1)
    ),
    "split": lambda b, n: b.stream("t").split(name=n).no_default_branch(),
    "printed": lambda b, n: b.stream("t").print(name=n),
}

LENGTHS: dict[str, Callable[[int], object]] = {
    "time-size": lambda n: TimeWindows(n),
    "time-grace": lambda n: TimeWindows(10, grace=n),
    "time-advance": lambda n: TimeWindows(10, advance=n),
    "sliding-difference": lambda n: SlidingWindows(n),
    "sliding-grace": lambda n: SlidingWindows(10, grace=n),
    "session-gap": lambda n: SessionWindows(n),
    "session-grace": lambda n: SessionWindows(10, grace=n),
    "join-difference": lambda n: JoinWindows.of(n),
    "join-grace": lambda n: JoinWindows.of(10, grace=n),
    "join-before": lambda n: JoinWindows(before=-n, after=10),
    "join-after": lambda n: JoinWindows(before=10, after=-n),
    "unlimited-start": lambda n: UnlimitedWindows(n),
}


def written(name: str) -> str:
    """Return a name as the golden file has it."""
    return "''" if not name else f"x{len(name)}" if name.startswith("xx") else f"'{name}'"


def name_lines() -> list[str]:
    names = ["", ".", "..", "...", "a b", "a/b", "../up", "ok.N_1-", "x" * 200, "x" * 249, "x" * 250]
    return [f"{use} {written(name)} {outcome(use, name)}" for use in USES for name in names]


def outcome(use: str, name: str) -> str:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    try:
        USES[use](builder, name)
        builder.build()
    except TopologyError as error:
        return str(error)
    return "ok"


def length_lines() -> list[str]:
    return [f"{what} {ms} {verdict(what, ms)}" for what in LENGTHS for ms in (-1, 0, 1, 10, 11)]


def verdict(what: str, ms: int) -> str:
    try:
        LENGTHS[what](ms)
    except TopologyError:
        return "refused"
    return "ok"


def test_names_are_held_to_kafkas_rule() -> None:
    assert name_lines() == (GOLDEN / "names.txt").read_text().splitlines()


def test_lengths_of_windows_are_those_that_kafka_takes() -> None:
    assert length_lines() == (GOLDEN / "windows.txt").read_text().splitlines()


@java.needs_jar("kafka-streams")
def test_kafkas_are_these() -> None:
    printed = java.run_sections("Refusals")
    if os.environ.get("REWRITE"):
        for name, text in printed.items():
            (GOLDEN / f"{name}.txt").write_text(text)
    assert printed == {path.stem: path.read_text() for path in GOLDEN.glob("*.txt")}


@pytest.mark.parametrize("name", ["", ".", "..", "../../up", "a/b", "a\n", "x" * 250])
def test_a_store_of_any_kind_stays_in_its_folder(name: str) -> None:
    """Kafka checks no store that is added by its builder; ours is a folder, too."""
    spec = StoreSpec(name=name, kind="key_value", key_serde=str, value_serde=str)
    with pytest.raises(TopologyError, match="Name"):
        StreamsBuilder(key_serde=str, value_serde=str).add_store(spec)
    with pytest.raises(TopologyError, match="Name"):
        StreamsBuilder(key_serde=str, value_serde=str).add_global_store(spec, "t", Processor)
    with pytest.raises(TopologyError, match="Name"):
        Topology().add_state_store(spec)


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a b", "x" * 250])
def test_an_application_id_is_a_folders_name_too(name: str) -> None:
    with pytest.raises(ConfigError, match=r"application\.id"):
        StreamsConfig(application_id=name, bootstrap_servers="localhost:9092")

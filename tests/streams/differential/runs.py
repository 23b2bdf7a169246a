"""A plan, run by ours and by Kafka's TopologyTestDriver, told in the same text.

First the topology's description, then each event with the records written by it, by topic: key, value,
timestamp and headers. Of a changelog it is the last record of each key, by key: ours writes no others.
Changelogs of suppress, of versioned stores (`V`) and of records that wait for these are left out. So are
those of stream joins, since Kafka's contain records that its store refused. The times of sessions are left
out too: Kafka's are the record's, ours are the session's. Last come the stores' contents.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streams import StreamsBuilder, StreamsError, Topology
from streams.errors import SuppressBufferFull
from streams.testing import TopologyTestDriver
from tests.streams.differential.functions import text
from tests.streams.differential.operators import OPERATORS
from tests.streams.differential.plan import START, Event, Plan
from tests.support import java

END = "."
APPLICATION = "app"
"""Its name stands before those of topics in between, whose bytes `suppress` counts."""
REFUSED = "refused"
UNTOLD = re.compile(r".*(-store|SUPPRESS-STATE-STORE-[0-9]+|-Buffer|V[0-9]+)-changelog")


def ours(plan: Plan) -> str:
    """Return what ours does with the plan."""
    try:
        topology = built(plan)
    except StreamsError:
        return f"{REFUSED}\n"
    lines: list[str] = []
    try:
        for line in _run(plan, topology):  # what it has told counts if it fails
            lines.append(line)
    except SuppressBufferFull as full:
        lines = [*lines, f"failed: {full.records} records, {full.bytes} bytes held"]
    return "".join(f"{line}\n" for line in lines)


def built(plan: Plan) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    made: list[Any] = []
    for step in plan.steps:
        above, steps = [made[n] for n in step["of"]], [plan.steps[n] for n in step["of"]]
        made.append(OPERATORS[step["op"]].build(builder, step, above, steps))
    return builder.build(topology_optimization=plan.optimization)


def _run(plan: Plan, topology: Topology) -> Iterator[str]:
    yield topology.describe().rstrip()
    changelogs = {spec.changelog for spec in topology.stores.values() if spec.logged}
    of_sessions = {spec.changelog for spec in topology.stores.values() if spec.kind == "session"}
    chosen = {topic for step in plan.steps if step["op"] == "to_chosen" for topic in step["topics"]}
    topics = {*topology.sink_topics, *chosen, *topology.repartition_topics, *changelogs}
    with TopologyTestDriver(topology, start=START, application_id=APPLICATION) as driver:
        for event in plan.events:
            yield "> " + " ".join(_word(each) for each in event)
            _play(driver, event)
            for topic in sorted(topic for topic in topics if not UNTOLD.fullmatch(topic)):
                rows = list(driver.take(topic))
                driver.take(topic).clear()
                if topic in changelogs:
                    rows = sorted({row[1]: row for row in rows}.values(), key=lambda row: row[1] or b"")
                for timestamp, key, value, headers in rows:
                    header_text = "".join(f" {name}={_bytes(data)}" for name, data in headers)
                    when = "*" if topic in of_sessions else timestamp
                    yield f"{topic} {_bytes(key)} {_bytes(value)} {when}{header_text}"
        for name in sorted(shown(plan, topology)):
            store = driver.store(name)
            entries = [(text(store.decode_key(key)), text(value), at) for key, value, at in store.scan()]
            yield from sorted(f"{name}: {key} {value} {at}" for key, value, at in entries)


def shown(plan: Plan, topology: Topology) -> Iterator[str]:
    """Yield the stores whose contents are printed: no sessions, nor windows that may expire by segments."""
    for step in plan.steps:
        if (
            (store := step["store"])
            and store.get("history") is None
            and store["name"] in topology.stores
            and ("windowed" not in step or (store["retained"] and step["key"] != "sessions"))
        ):
            yield store["name"]


def _play(driver: TopologyTestDriver, event: Event) -> None:
    if event[0] == "wall":
        driver.advance_wall_clock(event[1])
        return
    _, topic, key, value, timestamp, headers = event
    encoded = tuple((name, None if data is None else data.encode()) for name, data in headers)
    driver.pipe(topic, key and key.encode(), value and value.encode(), timestamp, encoded)


def _word(word: Any) -> str:
    if isinstance(word, list):
        return ",".join(f"{name}={'-' if data is None else data}" for name, data in word) or "-"
    return "-" if word is None else str(word)


def _bytes(data: bytes | None) -> str:
    """Bytes as they are if they can be read, else by their hexadecimal digits."""
    if data is None:
        return "-"
    return data.decode() if data and all(33 <= byte < 127 for byte in data) else f"0x{data.hex()}"


class Kafkas:
    """A process of tests/java/Differential.java, which runs plan after plan; the folder is its own."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            java.program("Differential", str(folder)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, plan: Plan) -> str:
        """Return what Kafka does with the plan."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(plan.line + "\n")
        stdin.flush()
        lines = []
        while (line := stdout.readline()) != f"{END}\n":
            assert line, f"Kafka's process ended at {plan!r}"
            lines.append(line)
        return "".join(lines)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=java.SECONDS)
        assert self._process.returncode == 0

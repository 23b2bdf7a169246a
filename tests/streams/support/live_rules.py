"""The scripts of golden/ on a broker, many in one application, and two ways to play them.

*Step by step* a commit follows each step, as in `TopologyTestDriver`, so that cached tables forward each
update. A step has one record, so that no two inputs race. The test compares all records of each step, in
their order and with their times. Only a cached table after a repartition topic, to which a step sends several
records, forwards just the last one per key. In such cases (`tells_last`) the last record per key and step is
compared.

*At once* all input is there from the beginning, is processed in long runs, and commits come when they come.
That is for cases with one input, which alone keep their order. Compared is all of the output in its order
where no table is cached, else the table that it makes; `depends_on_commits` marks those of which even that
depends on which updates are told.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from streams import KafkaStreams, Topology, log_and_continue
from streams.queries import KeyValueView
from streams.runtime import app as app_module
from tests.streams.support.side_by_side import side_by_side

START = 3
"""Where the wall clock begins."""
OUT = "out"

Headers = tuple[tuple[str, bytes], ...]


class Step(NamedTuple):
    """A step of a script: a record or a move of the wall clock, and the lines that are written."""

    topic: str | None
    key: str | None
    value: str | None
    timestamp: int
    headers: Headers
    wall_ms: int
    wrote: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A script with its topology, whose serdes are strings at its ends. `tells_headers`: see `told`."""

    name: str
    topology: Topology
    steps: Sequence[Step]
    outer_join_emit_ms: int = 0
    windowed_emit_ms: int = 0
    tells_headers: bool = False
    tells_last: bool = False
    depends_on_commits: bool = False

    @property
    def moves_clock(self) -> bool:
        """Whether any step does."""
        return any(step.wall_ms for step in self.steps)

    @property
    def has_one_input(self) -> bool:
        """Whether its records cannot change their order."""
        return len({step.topic for step in self.steps}) == 1

    @property
    def fits_at_once(self) -> bool:
        """Whether it has the same result however its input comes."""
        return self.has_one_input and not self.moves_clock and not self.depends_on_commits

    @property
    def is_cached(self) -> bool:
        """Whether tables tell the last update per key at a commit, not each."""
        return any(spec.cached for spec in self.topology.stores.values())

    @property
    def clock(self) -> tuple[object, ...]:
        """Cases for which this is the same can be in one application: its clock and what goes by it."""
        return self.outer_join_emit_ms, self.windowed_emit_ms, self.name if self.moves_clock else ""

    def line_of(self, record: Any) -> str:
        """Return a record as its script has it."""
        _, timestamp, key, value, headers = record
        text = "-" if value is None else value.decode() or ("''" if self.tells_headers else "")
        numbers = "".join(f" #{number.decode()}" for _, number in headers if number)
        name = "-" if key is None else key.decode()
        return f"-> {name} {text} {timestamp}{numbers if self.tells_headers else ''}"


class SteppedClock:
    """Milliseconds since the epoch, which only a case moves: commits are due only when they are asked for."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def together(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """Cases by applications."""
    by_clock: defaultdict[tuple[object, ...], list[Case]] = defaultdict(list)
    for case in cases:
        by_clock[case.clock].append(case)
    return iter(by_clock.values())


async def play_step_by_step(
    bootstrap: str,
    name: str,
    folder: Path,
    cases: Sequence[Case],
    monkeypatch: pytest.MonkeyPatch,
    **settings: Any,
) -> None:
    """Run an application of these cases, of one `Case.clock`, through all steps; AssertionError."""
    clock = SteppedClock()
    monkeypatch.setattr(app_module, "wall_clock", clock)
    app = application(bootstrap, name, folder, cases, **settings)
    async with at_work(bootstrap, app) as (producer, outputs), app:
        await app.wait_until_caught_up()
        for number in range(max(len(case.steps) for case in cases)):
            going_on = [case for case in cases if number < len(case.steps)]
            steps = {f"{name}.{case.name}": case.steps[number] for case in going_on}
            await _write(producer, steps)
            await _are_in_global_tables(app, steps)
            clock.now += max(step.wall_ms for step in steps.values())
            await app.wait_until_caught_up()
            by_clock = sum(len(step.wrote) for step in steps.values() if step.wall_ms)
            output = await outputs.read(at_least=by_clock)
            for case in going_on:
                lines = [case.line_of(record) for record in output.pop(f"{name}.{case.name}.{OUT}", [])]
                wrote = case.steps[number].wrote
                expected = list(last(wrote).values()) if case.tells_last else list(wrote)
                assert lines == expected, f"{case.name}, step {number}: {case.steps[number]}"
            assert not output, f"written without a cause: {output}"


async def play_at_once(
    bootstrap: str, name: str, folder: Path, cases: Sequence[Case], **settings: Any
) -> None:
    """Run an application of cases with one input each, whose records are all there; AssertionError."""
    app = application(bootstrap, name, folder, cases, commit_interval_ms=20, **settings)
    async with at_work(bootstrap, app) as (producer, outputs):
        for number in range(max(len(case.steps) for case in cases)):
            going_on = [case for case in cases if number < len(case.steps)]
            await _write(producer, {f"{name}.{case.name}": case.steps[number] for case in going_on})
        async with app:
            await app.wait_until_caught_up()
        output = await outputs.read()
    for case in cases:
        lines = [case.line_of(record) for record in output.get(f"{name}.{case.name}.{OUT}", [])]
        wrote = [line for step in case.steps for line in step.wrote]
        assert table(lines) == table(wrote), case.name
        assert case.is_cached or lines == wrote, case.name


def table(lines: Iterable[str]) -> dict[str, str]:
    """Return the final values, by key."""
    values = {key: line.split(" ")[2] for key, line in last(lines).items()}
    return {key: value for key, value in values.items() if value != "-"}


def last(lines: Iterable[str]) -> dict[str, str]:
    """Return the last line of each key, in their order."""
    line_of_key: dict[str, str] = {}
    for line in lines:
        key = line.split(" ")[1]
        line_of_key.pop(key, None)
        line_of_key[key] = line
    return line_of_key


def application(
    bootstrap: str, name: str, folder: Path, cases: Sequence[Case], **settings: Any
) -> KafkaStreams:
    """Return one application of all these cases; `name` is the prefix of theirs."""
    return KafkaStreams(
        side_by_side({f"{name}.{case.name}": case.topology for case in cases}),
        application_id=f"{name}-app",
        bootstrap_servers=bootstrap,
        state_dir=str(folder),
        poll_ms=5,
        processing_exception_handler=log_and_continue,
        emit_interval_ms_kstreams_outer_join_spurious_results_fix=cases[0].outer_join_emit_ms,
        emit_interval_ms_kstreams_windowed_aggregation=cases[0].windowed_emit_ms,
        **settings,
    )


@asynccontextmanager
async def at_work(bootstrap: str, app: KafkaStreams) -> AsyncIterator[tuple[BatchProducer, Outputs]]:
    """Create the application's topics, and yield a producer and a reader of them."""
    topology = app.topology
    topics = [*topology.external_topics, *topology.sink_topics, *_global_topics(topology)]
    async with Client(bootstrap) as client, BatchProducer(client, linger_ms=0) as producer:
        await Admin(client).create_topics([NewTopic(topic, 1, 1) for topic in topics])
        async with Outputs(client, topology.sink_topics) as outputs:
            yield producer, outputs


def _global_topics(topology: Topology) -> list[str]:
    return [topic for source in topology.global_stores.values() for topic in source.topics]


async def _write(producer: BatchProducer, steps: Mapping[str, Step]) -> None:
    """Write the records of these steps, and wait for their acknowledgements."""
    sent = []
    for prefix, step in steps.items():
        if step.topic is not None:
            row = (step.timestamp, _raw(step.key), _raw(step.value), step.headers)
            sent.append(await producer.send(f"{prefix}.{step.topic}", 0, [row]))
    await asyncio.gather(*sent)


async def _are_in_global_tables(app: KafkaStreams, steps: Mapping[str, Step]) -> None:
    """Wait for them where they are of such a table: nothing else tells that it has been read."""
    for prefix, step in steps.items():
        for store, source in app.topology.global_stores.items():
            if f"{prefix}.{step.topic}" in source.topics:
                await _is_in(app, store, step)


async def _is_in(app: KafkaStreams, store: str, step: Step) -> None:
    table = app.store(store, KeyValueView)
    while step.key is not None and await table.get(step.key) != step.value:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


class Outputs:
    """The output that readers of committed records get, of topics with one partition, each record once."""

    def __init__(self, client: Client, topics: Sequence[str]) -> None:
        self._tps = [TopicPartition(topic, 0) for topic in topics]
        self._admin = Admin(client)
        self._fetcher = BatchFetcher(client, isolation_level="read_committed", fetch_max_wait_ms=10)
        self._fetcher.assign(dict.fromkeys(self._tps, 0))

    async def __aenter__(self) -> Outputs:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._fetcher.close()

    async def read(self, *, at_least: int = 0) -> dict[str, list[Any]]:
        """By topics: all there is now, and so many records in any case."""
        ends = await self._admin.list_offsets(dict.fromkeys(self._tps, "latest"))
        by_topic: defaultdict[str, list[Any]] = defaultdict(list)
        while sum(map(len, by_topic.values())) < at_least or any(
            self._fetcher.position(tp) < ends[tp].offset for tp in self._tps
        ):
            for fetched in await self._fetcher.fetch(timeout_ms=50):
                by_topic[fetched.tp.topic] += fetched.records()
        return {topic: records for topic, records in by_topic.items() if records}

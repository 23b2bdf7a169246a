"""A run of the demo: start the parts, wait until all records are through, check, and stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from kafka_client import Admin, Client
from millstream.demo import checks
from millstream.demo.checks import Check
from millstream.demo.counts import Counter, Counts, topic_ends
from millstream.demo.display import Display
from millstream.demo.failover import Failover
from millstream.demo.flights import Expected, airline_names, reckon
from millstream.demo.layout import AIRLINES, DELAYS, FLIGHTS, Layout
from millstream.demo.process import Part, PartFailed
from millstream.demo.stage import Stage
from millstream.zookeeper.ensemble import Ensemble

POLL_SECONDS = 0.5
DC1, DC2, ZOOKEEPER = "logd dc1", "logd dc2", "zookeeper"


@dataclass(slots=True)
class Outcome:
    """The outcome of a run."""

    stages: list[Stage]
    checks: list[Check]
    worst_days: list[dict[str, Any]]
    seconds: float

    @property
    def holds(self) -> bool:
        """True if every check holds."""
        return bool(self.checks) and all(check.holds for check in self.checks)


class Demo:
    """A run of the demo. Call `start`, then `work` for the outcome, and finally `stop`, also after errors.

    `kill_leader`: kill a node of the first data centre meanwhile; there must be others.
    """

    def __init__(
        self, layout: Layout, show: Callable[[list[Stage]], Display], *, kill_leader: bool = False
    ) -> None:
        self.layout = layout
        self._kill_leader = kill_leader
        self.files = Stage("connect: CSV files → dc1")
        self.streams = Stage("streams: flights ⋈ airlines → airline-delays")
        self.mirror = Stage("mirror: dc1 → dc2")
        self.spark = Stage("connect: dc1 → Spark, Parquet")
        self.stages = [self.files, self.streams, self.mirror, self.spark]
        self.display = show(self.stages)
        self.parts: dict[str, Part] = {}
        self._dc1: list[str] = []
        """The names of the first data centre's daemons."""
        self._statuses: dict[int, dict[str, Any]] = {}
        """The last status of each run of the streams application, by the number of restarts."""
        self._failure: PartFailed | None = None
        self._rounds = 0
        """How often the application has caught up since the files were in the log."""

    # Starting and stopping

    async def start(self) -> None:
        """Start all parts, the slowest first."""
        layout = self.layout
        layout.write_configs()
        commands = await self._dc1_commands()
        self._dc1 = list(commands)
        daemons = [
            self._part(name, command, is_ready=_logd_is_ready)
            for name, command in (*commands.items(), (DC2, layout.dc2_logd()))
        ]
        for part in daemons:
            await part.start()
        for part in daemons:
            self.display.note(f"{part.name}: started, process {part.pid}: {await part.ready}")
        async with Client(layout.dc1, client_id="demo") as client:
            if layout.is_cluster:
                await self._nodes_are_there(client)
            await Admin(client).create_topics(layout.topics)
            await self._start(
                self._part("connect spark", layout.spark_worker(), self.spark, on_line=self._spark_said)
            )
            await self._start(self._part("connect files", layout.files_worker(), self.files))
            await self._table_is_there(client)
        await self._start(
            self._part("streams", layout.streams(), self.streams, on_line=self._read_streams_status)
        )
        await self._start(self._part("mirror", layout.mirror(), self.mirror))

    async def _dc1_commands(self) -> dict[str, list[str]]:
        """Return the commands of the first data centre's brokers by name.

        In a cluster start ZooKeeper first.
        """
        if not self.layout.is_cluster:
            return {DC1: self.layout.dc1_logd()}
        ensemble = Ensemble(self.layout.folder / "zookeeper")
        (server,) = ensemble.servers
        part = self._part(ZOOKEEPER, server.command)
        await part.start()
        while await asyncio.to_thread(server.state) is None:
            part.check()
            await asyncio.sleep(POLL_SECONDS / 5)
        self.display.note(f"{part.name}: started, process {part.pid}: at {ensemble.connect_string}")
        return {
            node_name(node): self.layout.dc1_node(node, ensemble.connect_string) for node in self.layout.nodes
        }

    async def _nodes_are_there(self, client: Client) -> None:
        """Wait until the cluster has all of its nodes, which the replicas of topics need."""
        count = 0
        while count < len(self.layout.nodes):
            await asyncio.sleep(POLL_SECONDS / 5)
            count = len((await Admin(client).describe_cluster()).brokers)

    async def _start(self, part: Part) -> None:
        await part.start()
        self.display.note(f"{part.name}: started, process {part.pid}")

    async def _table_is_there(self, client: Client) -> None:
        """Wait for every airline, since the join does not wait for an input that is empty at the broker."""
        while (await topic_ends(client, [AIRLINES]))[AIRLINES] < len(airline_names(self.layout.airlines)):
            self.parts["connect files"].check()
            await asyncio.sleep(POLL_SECONDS / 5)

    def _part(
        self,
        name: str,
        command: list[str],
        stage: Stage | None = None,
        on_line: Callable[[str], None] | None = None,
        is_ready: Callable[[str], bool] = bool,
    ) -> Part:
        def restarted(name: str, status: int) -> None:
            self.display.note(f"{name} ended with status {status}: starting it again")
            if stage is not None:
                stage.restarts += 1

        log = self.layout.log(name.replace(" ", "-"))
        part = Part(name, command, log, on_line=on_line, on_restart=restarted, is_ready=is_ready)
        self.parts[name] = part
        return part

    async def stop(self) -> None:
        """Stop all parts, readers before the brokers they read from."""
        order = (("connect files", "streams", "mirror", "connect spark"), self._dc1, (DC2,), (ZOOKEEPER,))
        for names in order:
            await asyncio.gather(*(self.parts[name].stop() for name in names if name in self.parts))

    # Working

    async def work(self) -> Outcome:
        """Wait until every record has been through every part, then check everything."""
        failover = asyncio.create_task(self._fail_over(), name="failover")
        async with Counter(self.layout) as counter, _cancelled_behind(failover):
            expected = await asyncio.to_thread(reckon, self.layout.flights)
            counts = await self._until(counter, self._files_done)
            self.files.state = "done"
            # The current round may have begun before the last flight was in the log; the next one has not.
            await self._until(counter, lambda counts: self._rounds >= 2)
            self.streams.state = "done"
            counts = await self._until(
                counter, lambda counts: failover.done() and counts.mirrored() and counts.sunk()
            )
            survived = await failover
        self.mirror.state = self.spark.state = "done"
        results, worst = await self._check(expected, counts)
        return Outcome(self.stages, [*survived, *results], worst, self.display.seconds)

    async def _fail_over(self) -> list[Check]:
        """Kill a leader, if requested, and return the check."""
        if not self._kill_leader:
            return []
        nodes = {node: self.parts[node_name(node)] for node in self.layout.nodes}
        return [await Failover(self.layout.dc1, nodes, self.display.note).run()]

    async def _until(self, counter: Counter, through: Callable[[Counts], bool]) -> Counts:
        while True:
            counts = await counter.take()
            self._show(counts)
            for part in self.parts.values():
                part.check()
            if self._failure is not None:
                raise self._failure
            if through(counts):
                return counts
            await asyncio.sleep(POLL_SECONDS)

    def _files_done(self, counts: Counts) -> bool:
        return self.parts["connect files"].is_done

    def _show(self, counts: Counts) -> None:
        written = counts.dc1.get(FLIGHTS, 0) + counts.dc1.get(AIRLINES, 0)
        published = counts.dc1.get(DELAYS, 0)
        self.files.update(written, written)
        self.streams.update(self.streams.records_in, published)
        self.mirror.update(counts.dc1.get(FLIGHTS, 0) + published, sum(counts.dc2.values()))
        self.spark.update(counts.dc1.get(FLIGHTS, 0) + published, sum(counts.tables.values()))
        self.display.refresh()

    def _read_streams_status(self, line: str) -> None:
        """Read a status line of the streams application; its counts begin again with each restart."""
        try:
            status = json.loads(line)
        except ValueError:
            return
        life = self.parts["streams"].restarts
        before = self._statuses.get(life, {"caught_up": 0})["caught_up"]
        if status["caught_up"] > before and self.parts["connect files"].is_done:
            self._rounds += 1
        self._statuses[life] = status
        self.streams.update(
            sum(each["records_in"] for each in self._statuses.values()), self.streams.records_out
        )

    def _spark_said(self, line: str) -> None:
        """Read a status line of the worker, which continues after a connector or task has failed."""
        try:
            status = json.loads(line)
        except ValueError:
            return
        for connector in status["connectors"] if status["event"] == "status" else []:
            for part in (connector["connector"], *connector["tasks"]):
                if part["state"] == "FAILED":
                    reason = part["trace"].strip().splitlines()[-1]
                    log = self.parts["connect spark"].log
                    self._failure = PartFailed(
                        f"connect spark: {connector['name']} failed: {reason}; see {log}"
                    )

    async def _check(self, expected: Expected, counts: Counts) -> tuple[list[Check], list[dict[str, Any]]]:
        layout = self.layout
        self.display.note("all through; checking against the CSV, and dc1 against dc2")
        results = [checks.check_dropped(sum(status["dropped_records"] for status in self._statuses.values()))]
        results += await checks.check_digests(layout)
        results.append(
            checks.check_final_table(
                expected,
                airline_names(layout.airlines),
                await checks.read_final_table(layout.dc2, f"dc1.{DELAYS}"),
            )
        )
        of_spark, worst = await checks.check_spark(layout, expected, counts.dc1[FLIGHTS])
        return results + of_spark, worst


@asynccontextmanager
async def _cancelled_behind(task: asyncio.Task[list[Check]]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def node_name(node: int) -> str:
    """Return the name of the part that runs a node."""
    return f"{DC1} node {node}"


def _logd_is_ready(line: str) -> bool:
    return line.startswith("logd ready")

"""The metrics of an application by the names of Kafka Streams' metrics: read from its parts when asked.

An instance has one thread; it is called as Kafka Streams would call it. Stores are read beside the thread
that is at work on them: only those of tasks that run, which are neither being opened nor closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack

from kafka_client.metrics.metrics import Metrics, Read, Values
from kafka_client.metrics.windowed import Windowed, in_ms
from streams.graph import SinkNode, SourceNode
from streams.processors.metrics import NodeMetrics
from streams.runtime.loop import TaskLoop
from streams.runtime.opener import TaskOpener
from streams.runtime.restore.restore import StoreRestore
from streams.runtime.restore.restore_listener import progress
from streams.runtime.standbys import Standbys, StandbyTask
from streams.runtime.status import State, Status
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.running import RunningTask
from streams.state import CachedStore, SessionStore, VersionedStore, WindowStore
from streams.topology import Topology

DOMAIN = "kafka.streams"
_STATES = list(State)
"""Kafka numbers them in this order (KIP-1091)."""


class AppMetrics:
    """The metrics of one instance, from its start to its end."""

    def __init__(
        self,
        status: Status,
        loop: TaskLoop,
        opener: TaskOpener,
        standbys: Standbys,
        buffer: InputBuffer,
        topology: Topology,
    ) -> None:
        self._status = status
        self._buffer = buffer
        self._loop = loop
        self._opener = opener
        self._standbys = standbys
        self._nodes = topology.nodes

    def add_to(self, metrics: Metrics, client_id: str) -> Callable[[], None]:
        """Register all metrics. Return the function that removes them."""
        registrations, thread = ExitStack(), f"{client_id}-StreamThread-1"
        registrations.callback(metrics.add(DOMAIN, "stream-metrics", self._app, client_id=client_id))
        of_thread: Mapping[str, Read] = {
            "stream-thread-metrics": self._thread,
            "stream-state-updater-metrics": self._updater,
            "stream-task-metrics": self._tasks,
            "stream-processor-node-metrics": self._processors,
            "stream-topic-metrics": self._topics,
            "stream-state-metrics": self._stores,
        }
        registrations.callback(
            metrics.add("millstream", "streams-queues", self._loop.statistics, client_id=client_id)
        )
        registrations.callback(
            metrics.add("millstream", "input-buffer", self._buffer.statistics, client_id=client_id)
        )
        for type, read in of_thread.items():
            registrations.callback(metrics.add_each(DOMAIN, type, read, thread_id=thread))
        return registrations.close

    def _app(self) -> Values:
        state = self._status.state
        return {
            "client-state": _STATES.index(state),
            "alive-stream-threads": state in (State.REBALANCING, State.RUNNING),
            "failed-stream-threads": state in (State.PENDING_ERROR, State.ERROR),
        }

    def _thread(self) -> Iterable[tuple[Mapping[str, str], Values]]:
        return [({}, self._loop.thread_metrics.values(self._processed(self._loop.metrics())))]

    def _updater(self) -> Iterable[tuple[Mapping[str, str], Values]]:
        standbys, paused = len(self._standbys.tasks), self._standbys.paused
        values = {
            "active-restoring-tasks": len(self._opener.restoring),
            "standby-updating-tasks": 0 if paused else standbys,
            "standby-paused-tasks": standbys if paused else 0,
        }
        return [({}, values)]

    def _tasks(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for id, restores in self._opener.restoring.items():
            yield {"task-id": str(id)}, _restoring(restores.values())
        for id, standby in self._standbys.tasks.items():
            yield {"task-id": str(id)}, _updating(standby)
        all_seconds = sum(running.process.recent for running in self._running())
        for running in self._running():
            yield {"task-id": str(running.task.id)}, self._task(running, all_seconds)

    def _task(self, running: RunningTask, all_seconds: float) -> Values:
        """Return one task's metrics. ``all_seconds``: the time that all tasks took recently, s."""
        task = running.task
        queues = task.queues.values()
        return {
            "process-total": self._processed(task.metrics),
            **in_ms("process-latency", running.process),
            "active-process-ratio": running.process.recent / all_seconds if all_seconds else 0,
            "dropped-records-total": sum(each.dropped_records_total for each in task.metrics.values()),
            "active-buffer-count": sum(map(len, queues)),
            "input-buffer-bytes-total": sum(queue.memory_bytes for queue in queues),
            "cache-size-bytes-total": task.cache_bytes,
            "restore-total": running.restored,
            "restore-remaining-records-total": 0,
            "update-total": 0,
            "update-remaining-records-total": 0,
        }

    def _processors(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for running in self._running():
            for name, counted in running.task.metrics.items():
                if isinstance(self._nodes[name], SourceNode | SinkNode):
                    tags = {"task-id": str(running.task.id), "processor-node-id": name}
                    yield tags, {"process-total": counted.process_total, **_e2e_latency(counted)}

    def _topics(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for running in self._running():
            id = str(running.task.id)
            for tp, queue in running.task.queues.items():
                yield (
                    {"task-id": id, "processor-node-id": queue.source.name, "topic": tp.topic},
                    {
                        "records-consumed-total": queue.records_consumed,
                        "bytes-consumed-total": queue.bytes_consumed,
                    },
                )
            for topic, count in list(running.produced.items()):
                if nodes := running.task.writers_of(topic):  # else they are dead letters
                    tags = {"task-id": id, "processor-node-id": nodes, "topic": topic}
                    yield tags, {"records-produced-total": count}

    def _stores(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for running in self._running():
            for name, store in running.task.stores.items():
                if properties := store.backend.properties():
                    yield {"task-id": str(running.task.id), _scope(store): name}, properties
            for name, buffered in list(running.task.suppressed.items()):
                tags = {"task-id": str(running.task.id), "in-memory-suppression-state-id": name}
                yield tags, {**_buffered("count", buffered.count), **_buffered("size", buffered.size)}

    def _running(self) -> list[RunningTask]:
        return list(self._loop.tasks.values())

    def _processed(self, metrics: Mapping[str, NodeMetrics]) -> int:
        return sum(
            each.process_total for name, each in metrics.items() if isinstance(self._nodes[name], SourceNode)
        )


def _restoring(restores: Iterable[StoreRestore]) -> Values:
    state = progress(restores)
    return {"restore-total": state["restored"], "restore-remaining-records-total": state["remaining"]}


def _updating(standby: StandbyTask) -> Values:
    state = progress(standby.restores.values())
    return {"update-total": state["restored"], "update-remaining-records-total": state["remaining"]}


def _scope(store: CachedStore) -> str:
    """Return the name of the tag in which Kafka Streams has the names of such stores."""
    if isinstance(store, WindowStore):
        return "rocksdb-window-state-id"
    if isinstance(store, SessionStore):
        return "rocksdb-session-state-id"
    return "rocksdb-versioned-state-id" if isinstance(store, VersionedStore) else "rocksdb-state-id"


def _e2e_latency(source: NodeMetrics) -> Values:
    latency = source.record_e2e_latency
    if latency is None:
        return {}
    return {
        "record-e2e-latency-avg": latency.average,
        "record-e2e-latency-min": latency.smallest,
        "record-e2e-latency-max": latency.largest,
    }


def _buffered(what: str, values: Windowed) -> Values:
    return {
        f"suppression-buffer-{what}-avg": values.average,
        f"suppression-buffer-{what}-max": values.largest,
    }

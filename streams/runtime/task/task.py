"""A task: one partition group of one sub-topology, its stores and its records. No I/O, no clock of its own.

The runner feeds a task (`add`), lets it work (`process`, `punctuate`), and commits it. `flush` returns the
changes to send and the positions to commit; once all of them are safe, `written` writes the changes to the
stores' backends. `runtime.commit` explains this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from kafka_client import TopicPartition
from kafka_client.records import Record
from streams.errors import ProcessingError, StreamsError
from streams.graph import SourceNode
from streams.processors.metrics import BufferMetrics, NodeMetrics
from streams.processors.punctuation import PunctuationQueue
from streams.processors.wiring import TaskState
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.idle import IdleWatch
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.queue import InputQueue
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task_id import TaskId
from streams.state import CachedStore, Pending
from streams.topology import Row, Rows, Subtopology, Written, WrittenInOrder, wire

RUN_LIMIT = 200
"""The limit of records of one input between two choices of an input, and two readings of the clock."""
FIRST_RUN_LIMIT = 10
"""The first limit. It is doubled while a run takes less than RUN_MS, and halved after a longer run."""
RUN_MS = 20


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The stream times of task and stores, ms. They are restored with the positions: late records stay late.

    `stores` has all `CachedStore.clocks` by name.
    """

    task: int = -1
    stores: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flush:
    """The content of one task's commit: changelog records by store, positions and stream times.

    `taken_at`: the time of the flush (wall clock, ms).
    """

    changes: Mapping[str, Pending]
    positions: Mapping[TopicPartition, int]
    times: StreamTimes
    taken_at: int


class Task:
    """A wired `Program` with an `InputQueue` for each input."""

    def __init__(
        self,
        id: TaskId,
        subtopology: Subtopology,
        stores: Mapping[str, CachedStore],
        environment: TaskEnvironment,
        settings: TaskSettings | None = None,
        *,
        times: StreamTimes | None = None,
        written: type[Written] = Written,
    ) -> None:
        settings, times = settings or TaskSettings(), times or StreamTimes()
        self.id = id
        self.subtopology = subtopology
        self.stores = dict(stores)
        self.queues: dict[TopicPartition, InputQueue] = {}
        self._clock = environment.clock
        self._max_idle_ms = settings.max_idle_ms
        self._buffer = environment.buffer
        self._between_runs = environment.between_runs
        self._state = TaskState(
            task_id=str(id),
            stream_time=times.task,
            wall_clock=self._clock(),
            windowed_emit_interval_ms=settings.windowed_emit_interval_ms,
            global_stores=environment.global_stores,
            partition_count=environment.partition_count,
            topic_name=environment.topic_name,
            outer_join_emit_interval_ms=settings.outer_join_emit_interval_ms,
            coroutines=environment.coroutines,
        )
        self._state.application_id = settings.application_id
        if environment.state_dir is not None:
            self._state.state_dir = partial(environment.state_dir, id)
        for store in self.stores.values():
            store.set_clocks(times.stores)
        self._program = wire(
            subtopology, self.stores, state=self._state, handlers=settings.handlers, written=written
        )
        self._committed: dict[TopicPartition, int] = {}
        self.suppressed: dict[str, BufferMetrics] = {}
        """The numbers and sizes of suppressed records, by store; present after the first flush with some."""
        self._run_limit = FIRST_RUN_LIMIT
        self._holding = self._state.holding
        self.takes_input = True
        """False while draining for a commit: nodes release held records, and no new input is taken."""
        self.idle = IdleWatch(self.queues, self._state.on_idle, self._state.wall_clock)

    @property
    def stream_time(self) -> int:
        """The highest timestamp processed, ms; -1 before the first."""
        return self._state.stream_time

    @property
    def metrics(self) -> Mapping[str, NodeMetrics]:
        """The counters by node name."""
        return self._program.metrics

    # -- input

    def add_input(self, tp: TopicPartition, source: SourceNode, start: InputStart) -> None:
        """Read this partition from ``start`` on."""
        program = self._program
        self.queues[tp] = InputQueue(
            tp,
            source,
            program.heads[source.name],
            program.metrics[source.name],
            start,
            task_id=str(self.id),
            on_bad_record=program.failures.input,
            buffer=self._buffer,
        )
        self._committed[tp] = start.position

    def add(self, tp: TopicPartition, records: list[Record], next_offset: int, end: int) -> None:
        """Append fetched records to the queue of an input."""
        self.queues[tp].add(records, next_offset, end)

    # -- work

    def process(self, deadline: int | None = None) -> int:
        """Process records until the clock shows ``deadline``. Return the number of processed records.

        The record with the lowest time over all inputs is next. The task waits for an input whose queue is
        empty while the broker has more; for an empty input it waits ``max_idle_ms`` (KIP-353, KIP-695).
        """
        state, done = self._state, 0
        state.wall_clock = self._clock()
        while (
            not state.breaks_off
            and not (done and self._buffer.contended and not self.holds_decoded)
            and (limit := self._limit()) > 0
            and (choice := self._choose()) is not None
        ):
            queue, bound = choice
            begun_at = state.wall_clock
            try:
                done += queue.run(state, bound, limit)
            except StreamsError:
                raise
            except Exception as error:
                raise self._blamed(error) from error
            if state.by_stream_time:
                self._punctuate(state.by_stream_time, state.stream_time)
            state.wall_clock = self._clock()
            self._fit_runs(state.wall_clock - begun_at)
            self._between_runs()
            if deadline is not None and state.wall_clock >= deadline:
                break
        self.end_turn()
        return done

    def break_off(self) -> None:
        """Begin no record until `go_on`. May be called while another thread is in `process`."""
        self._state.breaks_off = True
        for queue in self.queues.values():
            queue.break_off()

    def go_on(self) -> None:
        """Begin records again."""
        self._state.breaks_off = False

    @property
    def breaks_off(self) -> bool:
        """True from `break_off` to `go_on`."""
        return self._state.breaks_off

    def _limit(self) -> int:
        """Return how many records of an input to process at once: 0 while a node has no room."""
        limit = 1 if self._state.by_stream_time else self._run_limit
        if not self._holding:
            return limit
        with self._during(""):
            for each in self._holding:
                each.collect()
        return min(limit, *(each.room for each in self._holding)) if self.takes_input else 0

    @property
    def held_records(self) -> int:
        """The number of records that nodes hold, because a coroutine runs or a batch is not full."""
        return sum(each.record_count for each in self._holding)

    def end_turn(self) -> None:
        """Forward results of coroutines and incomplete batches, because no more records are at hand."""
        if self._holding:
            with self._during(""):
                for each in self._holding:
                    each.end_turn()

    def _fit_runs(self, took_ms: int) -> None:
        """Adapt the run limit to the duration of a run: the clock is read between runs."""
        if took_ms > RUN_MS:
            self._run_limit = max(self._run_limit // 2, 1)
        elif self._run_limit < RUN_LIMIT:
            self._run_limit = min(self._run_limit * 2, RUN_LIMIT)

    @property
    def holds_decoded(self) -> bool:
        """True if a queue has decoded records, which take room in the input buffer."""
        return any(queue.holds_decoded for queue in self.queues.values())

    @property
    def has_input(self) -> bool:
        """True if records wait to be processed."""
        return any(queue.has_input for queue in self.queues.values())

    def put_back(self) -> None:
        """Drop decoded records to make room in the input buffer. A later turn decodes them again."""
        for queue in self.queues.values():
            queue.put_back()

    def _choose(self) -> tuple[InputQueue, int | None] | None:
        """Return the input to process next, and the timestamp up to which it stays the next."""
        chosen: InputQueue | None = None
        lowest, bound = 0, None
        for queue in self.queues.values():
            timestamp = queue.head_timestamp()
            if timestamp is None:
                if not self._goes_without(queue):
                    return None
            elif chosen is None or timestamp < lowest:
                bound = None if chosen is None else lowest
                chosen, lowest = queue, timestamp
            elif bound is None or timestamp < bound:
                bound = timestamp
        return None if chosen is None else (chosen, bound)

    def _goes_without(self, queue: InputQueue) -> bool:
        """Return True if the choice need not wait for an input whose queue is empty."""
        if self._max_idle_ms < 0:
            return True
        if not queue.is_caught_up:
            return False
        if self._max_idle_ms == 0:
            return True
        if queue.idle_since is None:
            queue.idle_since = self._state.wall_clock
        return self._state.wall_clock - queue.idle_since >= self._max_idle_ms

    def punctuate(self) -> None:
        """Fire schedules that are due by wall clock, and close windows on idle inputs."""
        self._state.wall_clock = self._clock()
        self._punctuate(self._state.by_wall_clock, self._state.wall_clock)
        if self._state.on_idle:
            self.idle.look(self._state.wall_clock, is_holding=self.held_records > 0)
            if self.idle.is_confirmed and not self._holds_back_changes:
                callbacks = self.idle.take_due()
                self._call(callbacks, self._state.wall_clock, "windows that close on idle inputs")

    @property
    def wants_commit(self) -> bool:
        """True if a processor requests a commit, or caches must forward changes before windows close.

        The windows are those that close on idle inputs.
        """
        return self._state.commit_requested or (self.idle.is_confirmed and self._holds_back_changes)

    @property
    def _holds_back_changes(self) -> bool:
        return any(store.needs_drain and store.listener is not None for store in self.stores.values())

    def _punctuate(self, punctuations: PunctuationQueue, now: int) -> None:
        self._call((partial(callback, now) for callback in punctuations.due(now)), now, "a schedule")

    def _call(self, callbacks: Iterable[Callable[[], None]], now: int, what: str) -> None:
        """Call each callback outside of the processing of a record."""
        for callback in callbacks:
            self._state.begin_punctuation(now)
            with self._during(what):
                try:
                    callback()
                except StreamsError:
                    raise
                except Exception as error:
                    self._program.failures.processing(self._program.node_that_raised(error), error, None)

    def _blamed(self, error: Exception) -> ProcessingError:
        state, node = self._state, self._program.node_that_raised(error)
        return ProcessingError(
            str(self.id),
            node,
            topic=state.topic,
            partition=state.partition,
            offset=state.offset,
            during=state.during,
        )

    @contextmanager
    def _during(self, what: str) -> Iterator[None]:
        self._state.during = what
        try:
            yield
        except StreamsError:
            raise
        except Exception as error:
            raise self._blamed(error) from error  # A node may have set the context of a held record.
        finally:
            self._state.during = ""

    # -- output and commit

    def take_output(self) -> dict[str, Rows]:
        """Return the rows written to topics since the last call, by the topology's topic names."""
        return self._program.written.take()

    def take_placed_output(self) -> dict[tuple[str, int], Rows]:
        """Return the rows with a chosen partition since the last call, by topic and partition."""
        return self._program.written.take_placed()

    def take_output_in_order(self) -> list[tuple[str, Row]]:
        """Return all rows since the last call in the order of writing. The task needs ``WrittenInOrder``."""
        written = self._program.written
        assert isinstance(written, WrittenInOrder), "the task was made to tell rows by topic"
        return written.take_in_order()

    def writers_of(self, topic: str) -> str:
        """Return the names of the sinks that write to a topic of the cluster.

        If no sink names the topic, they are all sinks that choose topics; "" if there is none.
        """
        sinks = self.subtopology.sinks
        named = [sink.name for sink in sinks if sink.topic and self._state.topic_name(sink.topic) == topic]
        return ", ".join(named or [sink.name for sink in sinks if sink.topic is None])

    @property
    def cache_bytes(self) -> int:
        """The approximate size of the stores' caches, bytes."""
        return sum(store.cache_bytes for store in self.stores.values())

    @property
    def committed(self) -> Mapping[TopicPartition, int]:
        """The position of each input at the last commit, or at its start."""
        return self._committed

    @property
    def needs_commit(self) -> bool:
        """True if anything happened since the last commit."""
        return (
            self._state.commit_requested
            or self.held_records > 0
            or self.idle.has_closed
            or any(store.needs_drain or store.pending for store in self.stores.values())
            or any(queue.position != self._committed[tp] for tp, queue in self.queues.items())
        )

    def flush(self) -> Flush:
        """Drain the stores and return the commit to send. Call `take_output` next, for the forwarded rows."""
        self._state.commit_requested = False  # Drained records may request the next commit.
        with self._during("changes of tables, forwarded at a commit"):
            self._program.drain()
        self.idle.has_closed = False
        for name, count_and_size in self._state.suppressed.items():
            count, size = count_and_size()
            metrics = self.suppressed.setdefault(name, BufferMetrics())
            metrics.count.record(count)
            metrics.size.record(size)
        store_times: dict[str, int] = {}
        for store in self.stores.values():
            store_times.update(store.clocks())
        return Flush(
            {name: store.pending for name, store in self.stores.items() if store.pending},
            {tp: queue.position for tp, queue in self.queues.items()},
            StreamTimes(self._state.stream_time, store_times),
            self._clock(),
        )

    def written(self, flush: Flush, checkpoints: Mapping[str, int]) -> None:
        """Write a committed flush to the stores' backends, each with its changelog offset."""
        for name, store in self.stores.items():
            # Not the current time: after a pause of the process, other members may have run the task.
            store.written(checkpoints.get(name), flush.taken_at)
        self._committed.update(flush.positions)

    def shrink(self) -> None:
        """Free the caches' memory; call it after `written`."""
        for store in self.stores.values():
            store.shrink()

    def close(self, *, clean: bool = True) -> None:
        """Close processors (if ``clean``) and stores. Uncommitted changes are lost."""
        for each in self._holding:
            each.give_up()
        try:
            if clean:
                self._program.close()
        finally:
            for queue in self.queues.values():
                queue.drop()
            for store in self.stores.values():
                store.close()

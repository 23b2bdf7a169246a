"""Queries of this instance's stores: finds the stores, and reads each in the thread that works on it.

Tasks and global tables are read in the worker, between two records: a query sees all processed records,
committed or not, and no record halfway. Standbys and stores that are being restored are read in the restorer,
between two batches of the changelog: they have committed records only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from streams.errors import InvalidStateStore, StreamsNotRunning, UnknownStateStore
from streams.graph import ProcessorNode
from streams.queries.answer import Answer
from streams.queries.position import Position, PositionBound
from streams.queries.query import Query
from streams.queries.reading import UnknownQuery, read
from streams.queries.result import FailureReason, QueryResult, StateQueryResult
from streams.queries.view import VIEWS, StoreView
from streams.runtime.loop import TaskLoop
from streams.runtime.opener import TaskOpener
from streams.runtime.restore.global_stores import GlobalStores
from streams.runtime.standbys import Standbys
from streams.runtime.status import State, Status
from streams.runtime.task.task import Task
from streams.runtime.threads.worker import Worker
from streams.state import CachedStore
from streams.topology import Subtopology, Topology

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V", bound=StoreView)

QUERYABLE = frozenset({State.REBALANCING, State.RUNNING})
GLOBAL_PARTITION = 0
"""The partition number under which a global table is queried."""


class LocalStore(NamedTuple):
    """A store of one partition in this instance. `active`: of a running task, or of a global table."""

    partition: int
    store: CachedStore
    position: Callable[[], Position]
    active: bool


@dataclass(frozen=True, slots=True)
class LocalQueries:
    """The queries of one instance's stores. Its methods may be called from any thread."""

    topology: Topology
    status: Status
    loop: TaskLoop
    standbys: Standbys
    opener: TaskOpener
    global_stores: GlobalStores
    worker: Worker
    restorer: Worker

    def view(self, name: str, expected: type[V], *, partition: int | None, stale: bool) -> V:
        """Return a read-only view; see `KafkaStreams.store`."""
        self.check(name)
        kind = self.topology.stores[name].kind
        if kind not in VIEWS:
            remedy = ": ask app.query()" if kind == "versioned_key_value" else ""
            raise InvalidStateStore(f"store {name} is of kind {kind}, which has no view{remedy}")
        view = VIEWS[kind](_Stores(self, name, None if partition is None else (partition,), stale))
        if not isinstance(view, expected):
            raise InvalidStateStore(
                f"store {name} is seen as a {type(view).__name__}, not a {expected.__name__}"
            )
        return view

    def check(self, name: str) -> None:
        """Raise StreamsNotRunning or UnknownStateStore if the store cannot be queried."""
        if self.status.state not in QUERYABLE:
            raise StreamsNotRunning(self.status.state.value)
        if name not in self.topology.stores:
            raise UnknownStateStore(name, self.topology.stores)

    # -- queries with positions

    def query(
        self,
        name: str,
        query: Query,
        *,
        partitions: Collection[int] | None,
        position_bound: PositionBound,
        require_active: bool,
    ) -> Answer[StateQueryResult]:
        """Query a store; see `KafkaStreams.query`."""
        self.check(name)

        def ask(stores: Iterable[LocalStore]) -> dict[int, QueryResult]:
            return {
                each.partition: _result(each, query, position_bound)
                for each in stores
                if partitions is None or each.partition in partitions
            }

        def both(running: dict[int, QueryResult], copies: dict[int, QueryResult]) -> StateQueryResult:
            if require_active:
                copies = {partition: _not_active(name, partition) for partition in copies}
            results = copies | running
            for partition in partitions or ():
                results.setdefault(partition, _not_present(name, partition))
            return StateQueryResult(dict(sorted(results.items())))

        def is_enough(running: dict[int, QueryResult]) -> bool:
            return partitions is not None and all(each in running for each in partitions)

        return self._ask(
            lambda: ask(self._running(name)), lambda: ask(self._stale(name)), is_enough=is_enough, use=both
        )

    # -- the queries of views

    def each(
        self, name: str, use: Callable[[CachedStore], T], partitions: Collection[int] | None, stale: bool
    ) -> Answer[list[tuple[int, T]]]:
        """Return the result of ``use`` for each store here, by partition.

        The answer raises InvalidStateStore if there is no store, or if one of ``partitions`` is missing.
        """
        self.check(name)

        def ask(stores: Iterable[LocalStore]) -> dict[int, T]:
            return {
                each.partition: use(each.store)
                for each in stores
                if partitions is None or each.partition in partitions
            }

        def both(active: dict[int, T], copies: dict[int, T]) -> list[tuple[int, T]]:
            results = copies | active
            missing = sorted(set(partitions or ()) - results.keys())
            if missing or not results:
                raise InvalidStateStore(_absent(name, missing, stale))
            return sorted(results.items())

        def is_enough(active: dict[int, T]) -> bool:
            return not stale or (partitions is not None and all(each in active for each in partitions))

        return self._ask(
            lambda: ask(self._running(name)), lambda: ask(self._stale(name)), is_enough=is_enough, use=both
        )

    def _ask(
        self,
        running: Callable[[], dict[int, T]],
        copies: Callable[[], dict[int, T]],
        *,
        is_enough: Callable[[dict[int, T]], bool],
        use: Callable[[dict[int, T], dict[int, T]], U],
    ) -> Answer[U]:
        """Read running tasks' stores, then copies if necessary. Return what ``use`` makes of both."""
        answer: Future[U] = Future()

        def end(active: Future[dict[int, T]], second: Future[dict[int, T]] | None) -> None:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(use(active.result(), {} if second is None else second.result()))
            except Exception as error:
                answer.set_exception(error)

        def go_on(active: Future[dict[int, T]]) -> None:
            if active.exception() is not None or is_enough(active.result()):
                end(active, None)
                return
            try:
                second = self.restorer.ask(copies)
            except InvalidStateStore as error:
                second = Future()
                second.set_exception(error)
            second.add_done_callback(partial(end, active))

        self.worker.ask(running).add_done_callback(go_on)
        return Answer(answer)

    # -- finding stores, in the thread that may touch them

    def _running(self, name: str) -> list[LocalStore]:
        """Return the stores of running tasks and global tables. Call it in the worker, which closes tasks."""
        if name in self.global_stores.stores:
            position = Position.before(self.global_stores.positions_of(name))
            store = self.global_stores.stores[name]
            return [LocalStore(GLOBAL_PARTITION, store, lambda: position, True)]
        tasks = [running.task for running in list(self.loop.tasks.values())]
        return [
            LocalStore(task.id.partition, task.stores[name], _task_position(task, name), True)
            for task in tasks
            if name in task.stores
        ]

    def _stale(self, name: str) -> list[LocalStore]:
        """Return the stores of standbys and of tasks that are being restored. Call it in the restorer.

        The restorer also closes stores. A task that is restored to the end is left out: it is about to run,
        and the worker may use its stores at once.
        """
        copies: dict[int, LocalStore] = {}
        for restores in list(self.opener.restoring.values()):
            if any(not each.is_done for each in list(restores.values())):
                for tp, each in list(restores.items()):
                    if each.store.name == name:
                        copies[tp.partition] = _copy(tp.partition, each.store, Position())
        for standby in list(self.standbys.tasks.values()):
            for tp, each in list(standby.restores.items()):
                if each.store.name == name:
                    copies[tp.partition] = _copy(tp.partition, each.store, standby.position)
        return list(copies.values())


def _copy(partition: int, store: CachedStore, position: Position) -> LocalStore:
    return LocalStore(partition, store, lambda: position, False)


class _Stores:
    """`view.Stores` of one name."""

    def __init__(
        self, queries: LocalQueries, name: str, partitions: Collection[int] | None, stale: bool
    ) -> None:
        self._queries = queries
        self._name = name
        self._partitions = partitions
        self._stale = stale

    def partitions(self) -> Answer[list[int]]:
        """Return the partitions whose stores are here."""
        answers = self._ask(lambda store: None, None)
        return answers.then(lambda results: [partition for partition, _ in results])

    def each(self, query: Query, partitions: Collection[int] | None = None) -> Answer[list[Any]]:
        """Return the answer of each partition."""
        answers = self._ask(lambda store: read(store, query), partitions)
        return answers.then(lambda results: [answer for _, answer in results])

    def count(self) -> Answer[int]:
        """Return the approximate number of entries in all partitions."""
        counts = self._ask(CachedStore.approximate_num_entries, None)
        return counts.then(lambda results: sum(count for _, count in results))

    def _ask(
        self, use: Callable[[CachedStore], T], partitions: Collection[int] | None
    ) -> Answer[list[tuple[int, T]]]:
        return self._queries.each(self._name, use, partitions or self._partitions, self._stale)


def _task_position(task: Task, name: str) -> Callable[[], Position]:
    """Return the function that returns the position of a running task's store.

    A cached store forwards its changes at commits. So a store below it has the inputs up to the last commit.
    """
    if _is_behind_cache(task.subtopology, name, task.stores):
        return lambda: Position.before(task.committed)
    return lambda: Position.before({tp: queue.position for tp, queue in task.queues.items()})


def _is_behind_cache(subtopology: Subtopology, name: str, stores: Mapping[str, CachedStore]) -> bool:
    nodes = {node.name: node for node in subtopology.nodes}
    owners: dict[str, str] = {}
    for node in subtopology.nodes:
        for store in node.stores if isinstance(node, ProcessorNode) else ():
            owners.setdefault(store, node.name)
    cached = {node for store, node in owners.items() if stores[store].spec.cached}
    visited: set[str] = set()
    above = list(nodes[owners[name]].parents)
    while above:
        parent = above.pop()
        if parent in cached:
            return True
        if parent in nodes and parent not in visited:
            visited.add(parent)
            above += nodes[parent].parents
    return False


def _result(local: LocalStore, query: Query, bound: PositionBound) -> QueryResult:
    """Return one store's answer with the position of that moment: no record is processed meanwhile."""
    position = local.position()
    name, partition = local.store.name, local.partition
    facts: dict[str, Any] = {"position": position, "active": local.active}
    for topic, least, there in bound.missing(position, partition):
        message = (
            f"store {name}, partition {partition}, is at offset {there} of {topic}-{partition}, and {least} "
            "is asked for: ask again, or another instance"
        )
        return QueryResult(failure=FailureReason.NOT_UP_TO_BOUND, message=message, **facts)
    try:
        return QueryResult(value=read(local.store, query), **facts)
    except UnknownQuery as error:
        return QueryResult(failure=FailureReason.UNKNOWN_QUERY_TYPE, message=str(error), **facts)
    except Exception as error:
        return QueryResult(failure=FailureReason.STORE_EXCEPTION, message=str(error), **facts)


def _not_active(name: str, partition: int) -> QueryResult:
    message = f"store {name}, partition {partition}, is a copy here: ask the instance that runs its task"
    return QueryResult(failure=FailureReason.NOT_ACTIVE, message=message, active=False)


def _not_present(name: str, partition: int) -> QueryResult:
    message = _absent(name, [partition], stale=True)
    return QueryResult(failure=FailureReason.NOT_PRESENT, message=message, active=False)


def _absent(name: str, partitions: list[int], stale: bool) -> str:
    which = f"partition {', '.join(map(str, partitions))} of store {name} is" if partitions else ""
    return (
        f"{which or f'no partition of store {name} is'} not in this instance, or no longer: ask the one that "
        "query_metadata_for_key() names" + ("" if stale else ", or have copies read with stale=True")
    )

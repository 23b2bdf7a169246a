"""ZooKeeper in memory: znodes with versions, ephemerals, watches and `multi`, sessions that expire.

    Session, Connection (the product's own) ──▶ ZooKeeperClient ──▶ Ensemble

`ZooKeeperClient` takes the place of `logd.metadata.zookeeper.session.client.Client`, which wraps kazoo. The
ensemble's leader decides writes at once. Reads see what the client's server knows (`servers`). The requests
of one client are answered in order. A watch fires before the answer to any later request.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from logd.metadata.zookeeper.errors import BadVersion, ConnectionLost, NodeExists, NoNode, NotEmpty
from logd.metadata.zookeeper.session.client import Answered, ClientEvent
from logd.metadata.zookeeper.session.operations import (
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Get,
    Multi,
    MultiFailed,
    Operation,
    SetData,
    Stat,
    Sync,
    Triggered,
    Write,
)
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from tests.faults.cluster_simulation.loop import SimulatedLoop
from tests.faults.cluster_simulation.machine import LIFE, NOBODY, Life
from tests.faults.cluster_simulation.servers import Decided, Server, Watch, ZnodeState

PLACE = "zookeeper"
"""In the network."""
PINGS_PER_TIMEOUT = 3
SILENCE = 2 / 3
"""Part of a timeout without an answer after which a client changes its connection, as kazoo does."""
RECONNECT_S = 0.05
STEP_S = 1e-7


@dataclass
class Znode:
    """`number` is the next sequential child's."""

    data: bytes
    czxid: int
    mzxid: int
    ctime_ms: int
    owner: int = 0
    version: int = 0
    children: set[str] = field(default_factory=set)
    number: int = 0

    def state(self) -> ZnodeState:
        """Return the znode's present state."""
        return ZnodeState(self.data, self.stat(), sorted(self.children))

    def stat(self) -> Stat:
        """See `Stat`."""
        return Stat(self.czxid, self.mzxid, self.version, self.owner, len(self.children), self.ctime_ms)


@dataclass
class ServerSession:
    """A session, as the ensemble has it."""

    number: int
    timeout_s: float
    heard_at: float
    ephemerals: set[str] = field(default_factory=set)


class Ensemble:
    """Its leader. `written` is called with each path whose value was set or that was created, once it is so;
    `zxid` is the last change that is decided. Each server learns of changes when its lag is over.
    """

    def __init__(self, loop: SimulatedLoop, lags: Sequence[Callable[[], float]]) -> None:
        self.loop = loop
        self.network = loop.network
        self.is_away = False
        self.znodes: dict[str, Znode] = {"/": Znode(b"", 0, 0, 0)}
        self.sessions: dict[int, ServerSession] = {}
        self.written: Callable[[str, bytes], None] = lambda path, data: None
        self.expired: Callable[[int], None] = lambda session: None
        """Called with the number of a session that has not been heard of for too long, once it is over."""
        self.clients: list[ZooKeeperClient] = []
        self.servers = [Server(loop, self.znodes["/"].state(), lag) for lag in lags]
        self.zxid = 0
        self.answered_late = 0
        """Answers of servers that did not know everything."""
        self._session_numbers = 0x100
        self._touched: set[str] = set()
        self._fired: list[tuple[Watch, str]] = []

    # Sessions

    def begin(self, timeout_ms: int) -> ServerSession:
        """Begin a session."""
        self._session_numbers += 1
        session = ServerSession(self._session_numbers, timeout_ms / 1000, self.loop.time())
        self.sessions[session.number] = session
        self._look_again(session)
        return session

    def touch(self, number: int) -> bool:
        """Note a sign of life of a session, and return True if the session lives."""
        session = self.sessions.get(number)
        if session is None:
            return False
        session.heard_at = self.loop.time()
        return True

    def end(self, number: int) -> None:
        """End a session, and delete its ephemerals."""
        session = self.sessions.pop(number, None)
        if session is not None and session.ephemerals:
            self.zxid += 1
            for path in sorted(session.ephemerals):
                self._remove(path)
            self._tell()

    def _look_again(self, session: ServerSession) -> None:
        at = session.heard_at + session.timeout_s
        self.loop.call_at(at + 1e-4, self._expire, session, context=NOBODY)

    def _expire(self, session: ServerSession) -> None:
        if self.sessions.get(session.number) is not session:
            return
        if self.is_away:
            session.heard_at = self.loop.time()
        if session.heard_at + session.timeout_s <= self.loop.time():
            self.end(session.number)
            self.expired(session.number)
        else:
            self._look_again(session)

    def go_away(self) -> None:
        """Lose the majority: servers end their connections, and no session ends."""
        self.is_away = True
        for client in self.clients:
            client.break_down()

    def come_back(self) -> None:
        """Regain the majority. Sessions have their whole timeout again, unless there was one already."""
        if not self.is_away:
            return
        self.is_away = False
        for session in self.sessions.values():
            session.heard_at = self.loop.time()

    def any_server(self) -> Server:
        """Whom somebody connects to."""
        return self.servers[0] if len(self.servers) == 1 else self.loop.rng.choice(self.servers)

    # Requests

    def carry_out(self, operation: Write | Multi, session: int) -> Any:
        """Its answer; errors as `Operation` says."""
        answer: Any
        if isinstance(operation, Multi):
            self._try(operation.operations)
            self.zxid += 1
            answer = [
                None if isinstance(each, Check) else self._apply(each, session)
                for each in operation.operations
            ]
        else:
            self._check(operation)
            self.zxid += 1
            answer = self._apply(operation, session)
        self._tell()
        return answer

    def _tell(self) -> None:
        """Tell the servers what was decided."""
        znodes = {
            path: None if (znode := self.znodes.get(path)) is None else znode.state()
            for path in self._touched
        }
        decided = Decided(self.zxid, znodes, self._fired)
        self._touched, self._fired = set(), []
        for server in self.servers:
            server.hear(decided)

    def _try(self, operations: tuple[Any, ...]) -> None:
        """MultiFailed unless all of them can be carried out, each behind those before."""
        made: set[str] = set()
        removed: set[str] = set()
        for index, operation in enumerate(operations):
            try:
                self._check(operation, made, removed)
            except Exception as error:
                raise MultiFailed(index, error) from None
            if isinstance(operation, Create):
                made.add(operation.path)
                removed.discard(operation.path)
            elif isinstance(operation, Delete):
                removed.add(operation.path)
                made.discard(operation.path)

    def _check(
        self,
        operation: Any,
        made: set[str] = frozenset(),
        removed: set[str] = frozenset(),  # type: ignore[assignment]
    ) -> None:
        path = operation.path
        is_there = path in made or (path in self.znodes and path not in removed)
        if isinstance(operation, Create):
            parent = _parent(path)
            if parent in removed or not (parent in made or parent in self.znodes):
                raise NoNode(path)
            if is_there and not operation.sequential:
                raise NodeExists(path)
            return
        if not is_there:
            raise NoNode(path)
        if path in made:
            return
        znode = self.znodes[path]
        if operation.version not in (-1, znode.version):
            raise BadVersion(path)
        if isinstance(operation, Delete) and any(f"{path}/{name}" not in removed for name in znode.children):
            raise NotEmpty(path)

    def _apply(self, operation: Any, session: int) -> Any:
        match operation:
            case Create(path, data, ephemeral, sequential):
                return self._create(path, data, session if ephemeral else 0, sequential=sequential)
            case SetData(path, data):
                znode = self.znodes[path]
                znode.data, znode.mzxid, znode.version = data, self.zxid, znode.version + 1
                self._changed(Watch.VALUE, path)
                self.written(path, data)
                return znode.stat()
            case Delete(path):
                self._remove(path)
        return None

    def _create(self, path: str, data: bytes, owner: int, *, sequential: bool) -> str:
        parent = self.znodes[_parent(path)]
        if sequential:
            path = f"{path}{parent.number:010d}"
        parent.number += 1
        self.znodes[path] = Znode(data, self.zxid, self.zxid, int(self.loop.time() * 1000), owner)
        parent.children.add(path.rpartition("/")[2])
        if owner:
            self.sessions[owner].ephemerals.add(path)
        self._changed(Watch.VALUE, path)
        self._changed(Watch.CHILDREN, _parent(path))
        self.written(path, data)
        return path

    def _remove(self, path: str) -> None:
        znode = self.znodes.pop(path)
        self.znodes[_parent(path)].children.discard(path.rpartition("/")[2])
        if znode.owner in self.sessions:
            self.sessions[znode.owner].ephemerals.discard(path)
        self._changed(Watch.VALUE, path)
        self._changed(Watch.CHILDREN, path)
        self._changed(Watch.CHILDREN, _parent(path))

    def _changed(self, what: Watch, path: str) -> None:
        self._touched.add(path)
        self._fired.append((what, path))


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


Outcome = tuple[Any, Exception | None]
"""A request's answer, or why it failed."""


def _outcome(work: Callable[[], Any]) -> Outcome:
    try:
        return work(), None
    except Exception as error:
        return None, error


class ZooKeeperClient:
    """See `logd.metadata.zookeeper.session.client.Client`; made in the life of a broker."""

    def __init__(
        self,
        ensemble: Ensemble,
        settings: ZooKeeperSettings,
        clock: Callable[[], float],
        on_event: Callable[[ZooKeeperClient, ClientEvent], None],
    ) -> None:
        life = LIFE.get()
        assert life is not None, "a process asks ZooKeeper"
        self.life: Life = life
        self.last_error = ""
        self.timeout_ms = 0
        self.begun_at = 0.0
        self.session_id = 0
        self._ensemble = ensemble
        self._loop = ensemble.loop
        self._context = contextvars.copy_context()
        self._asked_ms = settings.session_timeout_ms
        self._clock = clock
        self._on_event = on_event
        self._server = ensemble.servers[0]
        self._decided = 0
        """The change that its server has to know before the next read: its last write, or its last sync."""
        self._latest_zxid = 0
        """The last change that it may have seen."""
        self._connection = 0
        """Its number; 0 while there is none."""
        self._connections = 0
        self._is_broken = False
        """Something got lost on this connection: nothing more comes by it."""
        self._heard_at = 0.0
        self._is_closed = False
        self._waiting: dict[int, tuple[Operation, Answered]] = {}
        self._requests = 0
        self._request_at = 0.0
        self._answer_at = 0.0
        ensemble.clients.append(self)

    def start(self) -> None:
        """See `Client.start`."""
        self._loop.call_soon(self._connect, context=self._context)

    # Connecting

    @property
    def _is_reachable(self) -> bool:
        network = self._ensemble.network
        place = self.life.place
        return not (
            self._ensemble.is_away or network.is_parted(place, PLACE) or network.is_parted(PLACE, place)
        )

    def _connect(self) -> None:
        if self._is_closed or self._connection:
            return
        asked_at = self._clock()
        delay = self._ensemble.network.latency()
        self._loop.call_later(delay, self._reach, asked_at, context=NOBODY)

    def _reach(self, asked_at: float) -> None:
        """At the ensemble."""
        server = self._ensemble.any_server()
        if not self._is_reachable or server.zxid < self._latest_zxid:
            self._loop.call_later(RECONNECT_S, self._connect, context=self._context)
            return
        self._server = server
        delay = self._ensemble.network.latency()
        if self.session_id:
            lives = self._ensemble.touch(self.session_id)
            self._loop.call_later(delay, self._connected, asked_at, lives, context=self._context)
        elif not self.life.is_dead:
            self.session_id = self._ensemble.begin(self._asked_ms).number
            self._loop.call_later(delay, self._connected, asked_at, True, context=self._context)

    def _connected(self, asked_at: float, lives: bool) -> None:
        if self._is_closed:
            return
        if not lives:
            self._is_closed = True
            self._on_event(self, ClientEvent.EXPIRED)
            return
        if not self.timeout_ms:
            self.begun_at = asked_at
        self.timeout_ms = self._asked_ms
        self._connections += 1
        self._connection = self._connections
        self._is_broken = False
        self._heard_at = self._loop.time()
        self._on_event(self, ClientEvent.CONNECTED)
        self._ping(self._connection)

    def _ping(self, connection: int) -> None:
        if self._is_closed or connection != self._connection:
            return
        timeout_s = self.timeout_ms / 1000
        if self._is_broken or self._loop.time() - self._heard_at > timeout_s * SILENCE:
            self.lose()
            return
        delay = self._ensemble.network.latency()
        self._loop.call_later(delay, self._ping_reaches, connection, context=NOBODY)
        self._loop.call_later(timeout_s / PINGS_PER_TIMEOUT, self._ping, connection, context=self._context)

    def _ping_reaches(self, connection: int) -> None:
        if connection != self._connection or self._is_broken:
            return
        if not self._is_reachable or not self._ensemble.touch(self.session_id):
            self._is_broken = True
        else:
            delay = self._ensemble.network.latency()
            self._loop.call_later(delay, self._pong, connection, context=self._context)

    def _pong(self, connection: int) -> None:
        if connection == self._connection:
            self._heard_at = self._loop.time()

    def lose(self) -> None:
        """Lose the connection; the outcome of unanswered requests is unknown."""
        if self._is_closed or not self._connection:
            return
        self._connection = 0
        waiting, self._waiting = self._waiting, {}
        for _, answered in waiting.values():
            answered(None, ConnectionLost("the connection to ZooKeeper ended before it answered"))
        self._on_event(self, ClientEvent.SUSPENDED)
        self._loop.call_later(RECONNECT_S, self._connect, context=self._context)

    def break_down(self) -> None:
        """Somebody in between has ended the connection."""
        self._loop.call_soon(self.lose, context=self._context)

    def close(self) -> None:
        """See `Client.close`."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._is_reachable:
            self._ensemble.end(self.session_id)

    # Asking

    def submit(self, operation: Operation, answered: Answered) -> None:
        """See `Client.submit`."""
        if self._is_closed or not self._connection:
            answered(None, ConnectionLost("there is no connection to ZooKeeper"))
            return
        self._requests += 1
        number = self._requests
        self._waiting[number] = operation, answered
        self._request_at = max(
            self._loop.time() + self._ensemble.network.latency(), self._request_at + STEP_S
        )
        self._loop.call_at(
            self._request_at, self._arrive, self._connection, number, operation, context=NOBODY
        )

    def _arrive(self, connection: int, number: int, operation: Operation) -> None:
        """At the ensemble."""
        if connection != self._connection and not self.life.is_dead:
            return
        if not self._is_reachable or not self._ensemble.touch(self.session_id):
            self._is_broken = True
            return
        server = self._server
        outcome: Callable[[], Outcome]
        if isinstance(operation, Get | Exists | Children):
            outcome = partial(_outcome, partial(server.read, operation, self, connection))
        else:
            done: Outcome = (
                (operation.path, None) if isinstance(operation, Sync) else self._written(operation)
            )
            self._decided, outcome = self._ensemble.zxid, lambda: done

        server.once_it_knows(self._decided, partial(self._serve, connection, number, outcome))

    def _written(self, operation: Write | Multi) -> Outcome:
        return _outcome(partial(self._ensemble.carry_out, operation, self.session_id))

    def _serve(self, connection: int, number: int, outcome: Callable[[], Outcome]) -> None:
        """Answer with what its server knows by now."""
        self._latest_zxid = max(self._latest_zxid, self._server.zxid)
        self._ensemble.answered_late += self._server.zxid < self._ensemble.zxid
        self._send(self._answer, connection, number, *outcome())

    def _send(self, what: Callable[..., None], *arguments: Any) -> None:
        self._answer_at = max(self._loop.time() + self._ensemble.network.latency(), self._answer_at + STEP_S)
        self._loop.call_at(self._answer_at, what, *arguments, context=self._context)

    def _answer(self, connection: int, number: int, answer: Any, failed: Exception | None) -> None:
        if connection != self._connection or self._is_broken:
            return
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            self._heard_at = self._loop.time()
            waiting[1](answer, failed)

    def fire_watch(self, connection: int, triggered: Triggered) -> None:
        """Send a watch's event on a connection."""
        if self._is_reachable:
            self._send(self._trigger, connection, triggered)
        else:
            self._is_broken = True

    def _trigger(self, connection: int, triggered: Triggered) -> None:
        if connection == self._connection and not self._is_broken:
            triggered(None)

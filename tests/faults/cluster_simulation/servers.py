"""The ensemble's servers for clients: each learns the leader's changes a little later, in the leader's order.

Reads are of what the server knows. So they may be stale, and two clients' reads of different age. One client
has ZooKeeper's guarantees. It never sees an older state than before, nor a state without its own writes. It
gets a watch's event before it can see what has changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from logd.metadata.zookeeper.errors import NoNode
from logd.metadata.zookeeper.session.operations import Children, Exists, Get, Stat, Triggered
from tests.faults.cluster_simulation.machine import NOBODY

if TYPE_CHECKING:
    from tests.faults.cluster_simulation.loop import SimulatedLoop
    from tests.faults.cluster_simulation.zookeeper import ZooKeeperClient

Read = Get | Exists | Children


class Watch(Enum):
    """The part of a znode that is watched."""

    VALUE = "value"
    CHILDREN = "children"


class ZnodeState(NamedTuple):
    """A znode, as of some change."""

    data: bytes
    stat: Stat
    children: Sequence[str]


class Decided(NamedTuple):
    """A transaction: the znodes it touched, None for those that are gone, and who is to be told."""

    zxid: int
    znodes: Mapping[str, ZnodeState | None]
    fired: Sequence[tuple[Watch, str]]


class Server:
    """`zxid` is the last change it knows; `lag` says how much later it learns of the next one, in seconds."""

    def __init__(self, loop: SimulatedLoop, root: ZnodeState, lag: Callable[[], float]) -> None:
        self.zxid = 0
        self._loop = loop
        self._lag = lag
        self._znodes: dict[str, ZnodeState] = {"/": root}
        self._watches: dict[tuple[Watch, str], list[tuple[ZooKeeperClient, int, Triggered]]] = {}
        self._coming: deque[Decided] = deque()
        self._last_at = 0.0
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    # From the leader

    def hear(self, decided: Decided) -> None:
        """Apply a change as soon as the server's lag allows, and never before an earlier one."""
        lag = self._lag()
        if not lag and not self._coming:
            self._apply(decided)
            return
        self._coming.append(decided)
        self._last_at = max(self._last_at, self._loop.time() + lag)
        self._loop.call_at(self._last_at, self._apply_next, context=NOBODY)

    def _apply_next(self) -> None:
        self._apply(self._coming.popleft())

    def _apply(self, decided: Decided) -> None:
        for path, state in decided.znodes.items():
            if state is None:
                self._znodes.pop(path, None)
            else:
                self._znodes[path] = state
        self.zxid = decided.zxid
        for fired in decided.fired:
            for client, connection, triggered in self._watches.pop(fired, ()):
                client.fire_watch(connection, triggered)
        ready = [serve for zxid, serve in self._waiting if zxid <= self.zxid]
        self._waiting = [each for each in self._waiting if each[0] > self.zxid]
        for serve in ready:
            serve()

    # For clients

    def once_it_knows(self, zxid: int, serve: Callable[[], None]) -> None:
        """Call ``serve`` when that change is known here."""
        if zxid <= self.zxid:
            serve()
        else:
            self._waiting.append((zxid, serve))

    def read(self, operation: Read, client: ZooKeeperClient, connection: int) -> Any:
        """Its answer, as of what is known here; NoNode."""
        kind = Watch.CHILDREN if isinstance(operation, Children) else Watch.VALUE
        state = self._znodes.get(operation.path)
        if state is None and not isinstance(operation, Exists):
            raise NoNode(operation.path)
        if operation.triggered is not None:
            watching = self._watches.setdefault((kind, operation.path), [])
            watching.append((client, connection, operation.triggered))
        if state is None:
            return None
        match operation:
            case Get():
                return state.data, state.stat
            case Exists():
                return state.stat
        return list(state.children)

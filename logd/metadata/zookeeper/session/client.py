"""The typed client of one ZooKeeper session, on top of kazoo; the client ends with its session.

kazoo calls the owner of a `Client` back in its own threads; `session` passes these calls to a loop. The
chroot is added to paths here and not by kazoo, so that a missing chroot can be created.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from logd.metadata.zookeeper.errors import (
    BadVersion,
    ConnectionLost,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    Refused,
    SessionExpired,
    ZooKeeperError,
)
from logd.metadata.zookeeper.session.handler import Handler
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
    Write,
)
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings

RECONNECT_S: Final = 0.05
RECONNECT_MAX_S: Final = 1.0
"""The longest pause between attempts to connect; kazoo's default is an hour."""
SECRET_PATHS: Final = (
    "/config/users",
    "/config/brokers",
    "/delegation_token/tokens",
    "/millstream/cluster_secret",
)
"""Paths that no other user may read under `zookeeper.set.acl`, as in Kafka; and a path of our own."""
OPEN_PATH: Final = "/consumers"
"""A path without ACLs, since old consumers write below it."""

log = logging.getLogger("logd.zookeeper")
# kazoo logs each attempt to connect; `session` logs the outcome.
_kazoo_log = logging.getLogger("logd.zookeeper.kazoo")
_kazoo_log.setLevel(logging.ERROR)


class ClientEvent(Enum):
    """The changes of a connection's state."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    NOT_ALLOWED = "not allowed"
    CLOSED = "closed"


Answered: TypeAlias = Callable[[object, Exception | None], None]
"""Called from a thread with the answer or an error of `errors`; it may be called more than once."""


class Client:
    """A client of ZooKeeper with one session. Call `start`; kazoo's thread calls `notify`.

    After EXPIRED only CLOSED is reported. `close` blocks: call it from a thread, once, also after EXPIRED.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        clock: Callable[[], float],
        notify: Callable[[Client, ClientEvent], None],
    ) -> None:
        self._settings = settings
        self._notify = notify
        # As in Java's client, a server has a share of the session timeout to connect; at most a third.
        share_s = settings.session_timeout_ms / 1000 / max(len(settings.hosts), 3)
        self._handler = Handler(settings.tls, share_s, clock, self._granted)
        self.timeout_ms = 0
        """The session timeout granted by the server; set once CONNECTED was reported."""
        self.begun_at = 0.0
        """A time before the session began, on `clock`; set together with `timeout_ms`."""
        self.session_id = 0
        """The id of the session; 0 before it is established."""
        self._kazoo = KazooClient(
            hosts=[_bracketed(host, port) for host, port in settings.hosts],
            timeout=settings.session_timeout_ms / 1000,
            handler=self._handler,
            auth_data=[("digest", settings.digest)] if settings.digest else None,
            connection_retry=KazooRetry(max_tries=-1, delay=RECONNECT_S, max_delay=RECONNECT_MAX_S),
            logger=_kazoo_log,
        )
        self._kazoo.add_listener(self._state_changed)

    @property
    def last_error(self) -> str:
        """The reason why the last attempt to connect failed; empty if none has failed."""
        return self._handler.last_error

    def start(self) -> None:
        """Begin to connect, and retry until it succeeds; return at once."""
        self._kazoo.start_async()

    def submit(self, operation: Operation, answered: Answered) -> None:
        """Send an operation; operations are sent in the order of calls.

        `answered` is called from another thread, possibly before this method returns.
        """
        try:
            result = self._sent(operation)
        except exceptions.KazooException as error:
            answered(None, _translated(error, _path_of(operation)))
            return
        result.rawlink(partial(self._completed, operation, answered))

    def close(self) -> None:
        """End the session, if it is alive, and kazoo's threads."""
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except exceptions.WriterNotClosedException as error:
            log.warning("a connection to ZooKeeper does not end: %s", error)

    def _granted(self, asked_at: float, timeout_ms: int) -> None:
        if not self.timeout_ms:
            self.begun_at = asked_at
        self.timeout_ms = timeout_ms or self.timeout_ms

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self.session_id = self._kazoo.client_id[0]
            self._notify(self, ClientEvent.CONNECTED)
        elif state == KazooState.SUSPENDED:
            self._notify(self, ClientEvent.SUSPENDED)
        else:
            self._handler.close_gate()
            self._notify(self, _ENDINGS.get(self._kazoo.client_state, ClientEvent.CLOSED))

    def _sent(self, operation: Operation) -> Any:
        kazoo = self._kazoo
        match operation:
            case Get(path, triggered):
                return kazoo.get_async(self._below(path), triggered)
            case Exists(path, triggered):
                return kazoo.exists_async(self._below(path), triggered)
            case Children(path, triggered):
                return kazoo.get_children_async(self._below(path), triggered)
            case Sync(path):
                return kazoo.sync_async(self._below(path))
            case Create(path, data, ephemeral, sequential, above_chroot):
                return kazoo.create_async(
                    path if above_chroot else self._below(path),
                    data,
                    self._acl(path),
                    ephemeral=ephemeral,
                    sequence=sequential,
                )
            case SetData(path, data, version):
                return kazoo.set_async(self._below(path), data, version)
            case Delete(path, version):
                return kazoo.delete_async(self._below(path), version)
            case Multi(operations):
                return self._multi(operations)

    def _multi(self, operations: Sequence[Write | Check]) -> Any:
        transaction, below = self._kazoo.transaction(), self._below
        for operation in operations:
            match operation:
                case Create(path, data, ephemeral, sequential):
                    transaction.create(below(path), data, self._acl(path), ephemeral, sequential)
                case SetData(path, data, version):
                    transaction.set_data(below(path), data, version)
                case Delete(path, version):
                    transaction.delete(below(path), version)
                case Check(path, version):
                    transaction.check(below(path), version)
        return transaction.commit_async()

    def _below(self, path: str) -> str:
        """Return the path in the ensemble, with the chroot; for `/` the chroot itself."""
        return self._settings.chroot + path if path != "/" else self._settings.chroot or "/"

    def _acl(self, path: str) -> list[Any]:
        if not self._settings.set_acl or path.startswith(OPEN_PATH):
            return OPEN_ACL_UNSAFE
        if path.startswith(SECRET_PATHS):
            return CREATOR_ALL_ACL
        return CREATOR_ALL_ACL + READ_ACL_UNSAFE

    def _completed(self, operation: Operation, answered: Answered, result: Any) -> None:
        error = result.exception
        if error is not None:
            answered(None, _translated(error, _path_of(operation)))
            return
        value = result.value
        match operation:
            case Get():
                answered((value[0] or b"", _stat(value[1])), None)
            case Exists() | SetData():
                answered(None if value is None else _stat(value), None)
            case Create():
                answered(value.removeprefix(self._settings.chroot), None)
            case Multi(operations):
                answered(*self._results(operations, value))
            case _:
                answered(value, None)

    def _results(
        self, operations: Sequence[Write | Check], results: Sequence[Any]
    ) -> tuple[object, Exception | None]:
        for index, result in enumerate(results):
            # kazoo reports RolledBackError before the failed operation, and RuntimeInconsistency after it.
            if isinstance(result, Exception) and not isinstance(result, exceptions.RolledBackError):
                return None, MultiFailed(index, _translated(result, operations[index].path))
        chroot = self._settings.chroot
        return [
            result.removeprefix(chroot)
            if isinstance(result, str)
            else _stat(result)
            if isinstance(operation, SetData)
            else None
            for operation, result in zip(operations, results, strict=True)
        ], None


_ENDINGS = {
    KeeperState.EXPIRED_SESSION: ClientEvent.EXPIRED,
    KeeperState.AUTH_FAILED: ClientEvent.NOT_ALLOWED,
}


def _stat(stat: Any) -> Stat:
    return Stat(stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner, stat.numChildren, stat.ctime)


def _bracketed(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _path_of(operation: Operation) -> str:
    return operation.operations[0].path if isinstance(operation, Multi) else operation.path


def _translated(error: BaseException, path: str) -> ZooKeeperError:
    match error:
        case exceptions.NoNodeError():
            return NoNode(path)
        case exceptions.NodeExistsError():
            return NodeExists(path)
        case exceptions.BadVersionError():
            return BadVersion(path)
        case exceptions.NotEmptyError():
            return NotEmpty(path)
        # kazoo also raises this error if the client has been closed.
        case exceptions.SessionExpiredError():
            return SessionExpired(f"the session with ZooKeeper ended before it answered for {path}")
        case exceptions.ConnectionLoss() | exceptions.SessionMovedError():
            return ConnectionLost(f"the connection to ZooKeeper ended before it answered for {path}")
        case exceptions.AuthFailedError():
            return NotAllowed("ZooKeeper does not accept the credentials of millstream.zookeeper.digest")
        case exceptions.NoAuthError():
            return NotAllowed(
                f"ZooKeeper's ACL of {path} keeps this broker out: give it an identity that may"
            )
        case exceptions.InvalidACLError():
            return NotAllowed(
                f"ZooKeeper knows no identity of this broker that {path} could be kept for "
                "(zookeeper.set.acl): give it millstream.zookeeper.digest, or by zookeeper.ssl.keystore.* a "
                "certificate that the servers ask for"
            )
    return Refused(f"ZooKeeper refuses {path}: {type(error).__name__} {error}".rstrip())

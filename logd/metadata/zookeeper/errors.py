"""Errors of ZooKeeper; a class says what the caller does next.

ZooKeeperError
├── Unreachable         no session was established in time: correct zookeeper.connect, or try again
├── NotAllowed          wrong credentials or ACLs: correct them; a retry would not help
├── ConnectionLost      no answer: repeat a read; find out the outcome of a write by reading
│   └── SessionExpired  the session and its ephemeral znodes are gone; a new session begins by itself
├── NoNode              there is no such znode (or no parent to create it under)
├── NodeExists          the znode exists already
├── NotEmpty            the znode has children
├── BadVersion          another client has changed the znode: read it again
├── ControllerMoved     a newer controller has been elected: stop deciding, nothing was written
├── DuplicateBrokerId   another broker is registered under the id: stop
├── ForeignBroker       a broker of Apache Kafka is registered: do not join, nothing was written
├── ChrootTaken         a standalone broker's metadata cannot be moved there: use another chroot
├── ClusterRuns         brokers run: send them a request instead
├── UnfinishedMove      a standalone broker's metadata is there in part: finish its move first
├── BadZnode            a znode has an unusable value: the error names path, value and remedy
└── Refused             ZooKeeper refuses for another reason, which the text names
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError

VALUE_SHOWN = 200
"""Characters of a znode's value that an error quotes, at most."""


class ZooKeeperError(MillstreamError):
    """The base class of all errors of this package."""


class Unreachable(ZooKeeperError):
    """An error: no session was established within `zookeeper.connection.timeout.ms`."""


class NotAllowed(ZooKeeperError):
    """An error: ZooKeeper refuses the broker's credentials, or its ACLs deny the request."""


class ConnectionLost(ZooKeeperError):
    """An error: the connection ended before the answer. A write may have been carried out or not."""


class SessionExpired(ConnectionLost):
    """An error: the session ended before the answer."""


class Refused(ZooKeeperError):
    """An error code of ZooKeeper without a class of its own."""


class _OfPath(ZooKeeperError):
    says = "{path}"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return self.says.format(path=self.path)


class NoNode(_OfPath):
    """An error: the znode does not exist."""

    says = "ZooKeeper has no {path}"


class NodeExists(_OfPath):
    """An error: the znode exists already."""

    says = "ZooKeeper has a {path} already"


class NotEmpty(_OfPath):
    """An error: the znode has children and cannot be deleted."""

    says = "ZooKeeper's {path} has children"


class BadVersion(_OfPath):
    """An error: the znode does not have the expected version."""

    says = "ZooKeeper's {path} was changed by somebody else"


class ControllerMoved(ZooKeeperError):
    """An error: `/controller_epoch` no longer has the version of this controller's election."""

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)
        self.epoch = epoch

    def __str__(self) -> str:
        return f"a controller newer than epoch {self.epoch} has been elected: nothing was written"


class DuplicateBrokerId(ZooKeeperError):
    """An error: another broker holds `/brokers/ids/N`."""

    def __init__(self, broker_id: int, registered: str) -> None:
        super().__init__(broker_id, registered)
        self.broker_id = broker_id
        self.registered = registered

    def __str__(self) -> str:
        return (
            f"broker.id={self.broker_id}: a broker with this id is registered already ({self.registered}); "
            "give this one another id, or stop that one"
        )


class ForeignBroker(ZooKeeperError):
    """An error: a broker of Apache Kafka is registered in the chroot.

    Its controller and logd's would undo each other's changes.
    """

    def __init__(self, connect: str, broker_id: int, registered: str) -> None:
        super().__init__(connect, broker_id, registered)
        self.connect = connect
        self.broker_id = broker_id
        self.registered = registered

    def __str__(self) -> str:
        return (
            f"zookeeper.connect={self.connect}: broker {self.broker_id} of that cluster ({self.registered}) "
            "is Apache Kafka's, which logd cannot share a cluster with: have zookeeper.connect end with a "
            "path of its own, such as /millstream"
        )


class ChrootTaken(ZooKeeperError):
    """An error: a standalone broker's metadata must not be written to this chroot."""

    def __init__(self, connect: str, reason: str) -> None:
        super().__init__(connect, reason)
        self.connect = connect
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot move to {self.connect}: {self.reason}"


class ClusterRuns(ZooKeeperError):
    """An error: brokers run, so that only their controller may change the metadata."""

    def __init__(self, connect: str) -> None:
        super().__init__(connect)
        self.connect = connect

    def __str__(self) -> str:
        return f"brokers run at {self.connect}, ask them instead: `millstream user add`"


class UnfinishedMove(ZooKeeperError):
    """An error: the chroot has only a part of a standalone broker's metadata."""

    def __init__(self, connect: str, broker_id: int) -> None:
        super().__init__(connect, broker_id)
        self.connect = connect
        self.broker_id = broker_id

    def __str__(self) -> str:
        return (
            f"the move of broker {self.broker_id} to {self.connect} is not finished: run `millstream cluster "
            "move-to-zookeeper` on that broker's host once more, as before"
        )


class BadZnode(ZooKeeperError):
    """An error: the value of a znode is unusable."""

    def __init__(self, path: str, value: bytes, reason: str, remedy: str) -> None:
        super().__init__(path, value, reason, remedy)
        self.path = path
        self.value = value
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        shown = self.value[:VALUE_SHOWN].decode("utf-8", "replace")
        return f"ZooKeeper's {self.path} is {shown!r}: {self.reason}; {self.remedy}"

"""Errors of ZooKeeper; a class says what the caller does next.

ZooKeeperError
├── Unreachable         no session came about in time: mend zookeeper.connect, or try again
├── NotAllowed          credentials or ACLs: mend them; a retry would not help
├── ConnectionLost      no answer: a read is repeated, a write's outcome is to be found out by reading
│   └── SessionExpired  the session is over and so are its ephemeral znodes; a new one follows by itself
├── NoNode              there is no such znode (or no parent to create it under)
├── NodeExists          there is one already
├── NotEmpty            it has children
├── BadVersion          somebody else has changed it: read again
├── ControllerMoved     a newer controller has been elected: stop deciding, nothing was written
├── DuplicateBrokerId   another broker is registered under the id: stop
├── ForeignBroker       a broker of Apache Kafka is there: do not join, nothing was written
├── ChrootTaken         a single node cannot be moved there: take another chroot, or do as it says
├── UnfinishedMove      a single node is on its way there: finish its move first
├── BadZnode            what is written there cannot be acted on: names path, value and remedy
└── Refused             ZooKeeper refuses for another reason, which the text names
"""

from __future__ import annotations

from kafka_client.errors import MillstreamError

VALUE_SHOWN = 200
"""Characters of a znode's value that an error quotes."""


class ZooKeeperError(MillstreamError):
    """Root of what this room raises."""


class Unreachable(ZooKeeperError):
    """No session within `zookeeper.connection.timeout.ms`."""


class NotAllowed(ZooKeeperError):
    """ZooKeeper does not accept our credentials, or its ACLs keep us out."""


class ConnectionLost(ZooKeeperError):
    """The connection ended before the answer: a write may have been carried out or not."""


class SessionExpired(ConnectionLost):
    """The session ended before the answer."""


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
    """There is no such znode."""

    says = "ZooKeeper has no {path}"


class NodeExists(_OfPath):
    """There is such a znode already."""

    says = "ZooKeeper has a {path} already"


class NotEmpty(_OfPath):
    """The znode has children and cannot be deleted."""

    says = "ZooKeeper's {path} has children"


class BadVersion(_OfPath):
    """The znode has not the version that was expected."""

    says = "ZooKeeper's {path} was changed by somebody else"


class ControllerMoved(ZooKeeperError):
    """The fence held: `/controller_epoch` has not the version of this controller's election."""

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)
        self.epoch = epoch

    def __str__(self) -> str:
        return f"a controller newer than epoch {self.epoch} has been elected: nothing was written"


class DuplicateBrokerId(ZooKeeperError):
    """Another broker holds `/brokers/ids/N`."""

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
    """Another software's broker is registered: its controller and ours would undo each other's work."""

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
    """A chroot that the metadata of a single node must not be written to."""

    def __init__(self, connect: str, reason: str) -> None:
        super().__init__(connect, reason)
        self.connect = connect
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot move to {self.connect}: {self.reason}"


class UnfinishedMove(ZooKeeperError):
    """A chroot with a part of a single node's metadata."""

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
    """A znode whose value cannot be acted on."""

    def __init__(self, path: str, value: bytes, reason: str, remedy: str) -> None:
        super().__init__(path, value, reason, remedy)
        self.path = path
        self.value = value
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        shown = self.value[:VALUE_SHOWN].decode("utf-8", "replace")
        return f"ZooKeeper's {self.path} is {shown!r}: {self.reason}; {self.remedy}"

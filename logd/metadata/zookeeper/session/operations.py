"""The requests to ZooKeeper, one class each.

`client` translates them for kazoo, and adds the chroot to the paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

ANY_VERSION = -1
Triggered: TypeAlias = Callable[[object], None]
"""Called once, from a thread of kazoo's, when the data that was read has changed or the connection was lost.

The argument has no reliable meaning.
"""


class Stat(NamedTuple):
    """The metadata of a znode."""

    czxid: int
    """The transaction that created the znode; in a registration, the broker's epoch."""
    mzxid: int
    """The transaction that last set the znode's value."""
    version: int
    """How many times the value was set since the creation; in a partition's state, the partition's epoch."""
    ephemeral_owner: int
    """The session that the znode ends with; 0 if the znode is not ephemeral."""
    children: int
    ctime_ms: int


@dataclass(frozen=True, slots=True)
class Get:
    """A read of a znode; the answer is `(bytes, Stat)`. Fails with NoNode.

    The watch is set only if the znode exists.
    """

    path: str
    triggered: Triggered | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """A read of a znode's stat; the answer is `Stat`, or None if the znode does not exist.

    The watch is set in either case.
    """

    path: str
    triggered: Triggered | None = None


@dataclass(frozen=True, slots=True)
class Children:
    """A read of the names of a znode's children, which are in no order. Fails with NoNode.

    The watch reports new and deleted children, but not changes of their values.
    """

    path: str
    triggered: Triggered | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """A request that is answered when the server has caught up with the ensemble's leader."""

    path: str = "/"


@dataclass(frozen=True, slots=True)
class Create:
    """The creation of a znode; the answer is its path. Fails with NodeExists, or NoNode for the parent.

    The path of a sequential znode ends in the number that ZooKeeper assigned.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    above_chroot: bool = False
    """True if the path is not below the chroot; it is used to create the chroot itself."""


@dataclass(frozen=True, slots=True)
class SetData:
    """A write of a znode's value; the answer is the new `Stat`. Fails with NoNode or BadVersion."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of a znode. Fails with NoNode, BadVersion or NotEmpty."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """A check in a `Multi`, which fails with BadVersion or NoNode unless the znode has this version."""

    path: str
    version: int


Write: TypeAlias = Create | SetData | Delete
Read: TypeAlias = Get | Exists | Children | Sync


@dataclass(frozen=True, slots=True)
class Multi:
    """Operations of which all or none are carried out; the answer is the list of their answers.

    Fails with `MultiFailed`, which has the error of the first operation that failed.
    """

    operations: tuple[Write | Check, ...]


Operation: TypeAlias = Read | Write | Multi


class MultiFailed(Exception):
    """An error: none of a `Multi` was carried out, because the operation number `index` failed with `error`.

    It stays within this package: the caller of a `Multi` translates it.
    """

    def __init__(self, index: int, error: Exception) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error

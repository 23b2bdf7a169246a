"""The requests to ZooKeeper: one class each, which `client` translates. Paths are below the chroot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

ANY_VERSION = -1
Triggered: TypeAlias = Callable[[object], None]
"""Called once, from a thread of kazoo's, when what was read has changed, or the connection was lost. Its
argument tells nothing that can be relied on.
"""


class Stat(NamedTuple):
    """A znode's data besides its value."""

    czxid: int
    """The transaction that created it; a broker's epoch is that of its registration."""
    mzxid: int
    """The transaction that set its value last."""
    version: int
    """How often its value was set since; a partition's epoch is that of its state."""
    ephemeral_owner: int
    """The session it lives with; 0 for one that stays."""
    children: int
    ctime_ms: int


@dataclass(frozen=True, slots=True)
class Get:
    """Answers `(bytes, Stat)`; NoNode. A watch is only set where there is a znode."""

    path: str
    triggered: Triggered | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """Answers `Stat`, or None where there is none. The watch is set in either case."""

    path: str
    triggered: Triggered | None = None


@dataclass(frozen=True, slots=True)
class Children:
    """Answers the names, in no order; NoNode. The watch is of names coming and going, not of their values."""

    path: str
    triggered: Triggered | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """Answers when the server asked has caught up with the ensemble's leader."""

    path: str = "/"


@dataclass(frozen=True, slots=True)
class Create:
    """Answers the path, which for a sequential one ends in its number; NodeExists, NoNode of the parent."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    above_chroot: bool = False
    """The path is the ensemble's own: for the chroot itself."""


@dataclass(frozen=True, slots=True)
class SetData:
    """Answers the new `Stat`; NoNode, BadVersion."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """NoNode, BadVersion, NotEmpty."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Only in a `Multi`, which fails by BadVersion (or NoNode) unless the znode has this version."""

    path: str
    version: int


Write: TypeAlias = Create | SetData | Delete
Read: TypeAlias = Get | Exists | Children | Sync


@dataclass(frozen=True, slots=True)
class Multi:
    """All or none. Answers what each would have; the error of the first that fails, as `MultiFailed`."""

    operations: tuple[Write | Check, ...]


Operation: TypeAlias = Read | Write | Multi


class MultiFailed(Exception):
    """None of a `Multi` was carried out: `index` is the operation's that failed, `error` why.

    It is met within this room only: who asks for several writes at once says what each failure means.
    """

    def __init__(self, index: int, error: Exception) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error

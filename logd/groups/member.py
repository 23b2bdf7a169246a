"""A member of a classic group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Waiter: TypeAlias = object
"""A waiting request of the caller; the core only carries it into the `Answer`."""

Protocols: TypeAlias = Sequence[tuple[str, bytes]]
"""The name and metadata of each protocol that a member supports, in its order of preference."""


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """A group's member: the data of its JoinGroup, its assignment, and its waiting request, if any."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """True until its first JoinGroup is answered: before, it does not know its id and cannot heartbeat."""
    joining: Waiter | None = None
    syncing: Waiter | None = None

    @property
    def is_static(self) -> bool:
        """True if the member has an instance id (KIP-345)."""
        return self.instance_id is not None

    @property
    def excused_from_heartbeat(self) -> bool:
        """True if the member is alive without heartbeats: it knows its id, and a request of it waits here."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        """Return the member's metadata for `protocol`, which it must support."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol}")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that the member prefers."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"member {self.member_id} supports none of the candidates")

    def matches(self, protocols: Protocols) -> bool:
        """Return True if these are the member's current protocols, with the same metadata."""
        return list(self.protocols) == list(protocols)

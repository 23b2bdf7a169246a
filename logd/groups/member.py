"""One member of a group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Waiter: TypeAlias = object
"""A waiting request, as the shell knows it: the core only carries it into the `Answer`."""

Protocols: TypeAlias = Sequence[tuple[str, bytes]]
"""Name and metadata of each protocol a member supports, the preferred one first."""


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """What a member told us, its assignment, and the request of it that waits, if any."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """It waits for its first JoinGroup's answer; until then it does not know its id and cannot heartbeat."""
    joining: Waiter | None = None
    syncing: Waiter | None = None

    @property
    def is_static(self) -> bool:
        """Whether it named an instance id (KIP-345)."""
        return self.instance_id is not None

    @property
    def excused_from_heartbeat(self) -> bool:
        """A known member whose request waits here is alive without a heartbeat."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        """Its metadata for a protocol it supports."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise AssertionError(f"member {self.member_id} does not support {protocol}")

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate it likes best."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise AssertionError(f"member {self.member_id} supports none of the candidates")

    def matches(self, protocols: Protocols) -> bool:
        """Whether these are the protocols, with the metadata, that it already has."""
        return list(self.protocols) == list(protocols)

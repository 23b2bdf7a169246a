"""The place in a partition from which a task reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InputStart:
    """The offset at which an input is begun."""

    position: int
    """The offset of the next record."""
    end: int = -1
    """The log end offset, -1 if unknown."""
    leader_epoch: int = -1
    """The leader epoch of the record before `position`, -1 if unknown."""

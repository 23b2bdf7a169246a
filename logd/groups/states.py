"""The states of a classic group, and which may follow which.

                 a member joins
        Empty ─────────────────────▶ PreparingRebalance ◀──────────────┐
          ▲                            │  ▲        ▲                   │
          │ nobody left                │  │        │ member joins,     │ member joins or leaves,
          └────────────────────────────┤  │        │ leaves or fails   │ leader joins again
                                       ▼  │        │                   │
                              CompletingRebalance ─┴─────────────▶ Stable
                                              leader's assignment stored

Any state becomes Dead when the group is deleted or its coordinator moves away.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class GroupState(Enum):
    """A state, named as DescribeGroups and ListGroups name it."""

    EMPTY = "Empty"
    """No members; offsets may be there and expire."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are (re)joining; JoinGroup requests wait."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation has begun and waits for its leader's assignment; SyncGroup requests wait."""
    STABLE = "Stable"
    """Every member has, or can fetch, its assignment."""
    DEAD = "Dead"
    """Deleted or moved away."""


PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}

"""The group coordinator's settings, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The settings of one coordinator partition; `logd.broker.groups` fills them from the broker's
    configuration.
    """

    group_min_session_timeout_ms: int = 6_000
    """Shorter session timeouts are refused with INVALID_SESSION_TIMEOUT."""
    group_max_session_timeout_ms: int = 1_800_000
    """Longer session timeouts are refused with INVALID_SESSION_TIMEOUT."""
    group_initial_rebalance_delay_ms: int = 3_000
    """How long an empty group waits for further members before its first generation (KIP-134)."""
    group_max_size: int = 2**31 - 1
    """Most members of a group; further ones are refused with GROUP_MAX_SIZE_REACHED (KIP-389)."""
    new_member_join_timeout_ms: int = 300_000
    """How long a new member may wait in JoinGroup: it does not know its id yet, so it cannot heartbeat."""
    pending_joins_max: int = 10_000
    """Most member ids of one group that are assigned but not used yet (KIP-394); a flood of such joins ends
    here.
    """
    offset_metadata_max_bytes: int = 4_096
    """Longest metadata of a committed offset, in characters."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """How long offsets are kept after their group's last member left, or after their commit without members
    (KIP-211).
    """

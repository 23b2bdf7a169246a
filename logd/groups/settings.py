"""The group coordinator's settings, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What one coordinator partition needs to know; `logd.broker.groups` fills it from the broker's
    configuration.
    """

    group_min_session_timeout_ms: int = 6_000
    """Shorter session timeouts are refused with INVALID_SESSION_TIMEOUT."""
    group_max_session_timeout_ms: int = 1_800_000
    """Longer session timeouts are refused with INVALID_SESSION_TIMEOUT."""
    group_initial_rebalance_delay_ms: int = 3_000
    """How long an empty group waits for further members before its first generation (KIP-134)."""
    group_max_size: int = 2**31 - 1
    """Members a group may have; more are refused with GROUP_MAX_SIZE_REACHED (KIP-389)."""
    new_member_join_timeout_ms: int = 300_000
    """How long a new member may wait in JoinGroup: it has no id yet and so cannot heartbeat."""
    pending_joins_max: int = 10_000
    """Member ids given out and not yet used (KIP-394) that one group may have; a flood of such joins ends
    here.
    """
    offset_metadata_max_bytes: int = 4_096
    """Longest text a client may store with an offset."""
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    """How long offsets outlive their group's last member, or their commit where there are no members
    (KIP-211).
    """

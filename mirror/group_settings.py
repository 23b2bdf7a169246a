"""Settings of a flow that concern consumer groups: checkpoints, and offsets committed in the target."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror.filters import NameFilter, patterns

GROUPS_EXCLUDE = r"console-consumer-.*, connect-.*, __.*"


def group_filter(include: str, exclude: str) -> NameFilter:
    """Return the filter for `groups` and `groups.exclude`. Raises ConfigError for an invalid expression."""
    return NameFilter(patterns("groups", include), patterns("groups.exclude", exclude))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Which groups' positions are translated, how often, and where the result goes."""

    groups: NameFilter = field(default_factory=lambda: group_filter(".*", GROUPS_EXCLUDE))
    refresh: bool = True
    """True to look for new groups after the start."""
    refresh_interval_seconds: float = 600
    emit_checkpoints: bool = True
    emit_checkpoints_interval_seconds: float = 60
    checkpoints_replication_factor: int = 3
    sync_offsets: bool = False
    """True to commit translated offsets in the target, for groups without members there."""
    sync_offsets_interval_seconds: float = 60

    @property
    def enabled(self) -> bool:
        """True if groups' offsets are translated at all."""
        return self.emit_checkpoints or self.sync_offsets

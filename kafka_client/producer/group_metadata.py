"""A consumer's membership in its group, for offsets that a transaction commits (KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass

NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """A member and its generation: offsets sent with it are refused once the generation is over.

    `GroupMetadata(group_id=...)` alone commits from outside of the group, fenced only by the transactional
    id. Kafka's ConsumerGroupMetadata.
    """

    group_id: str
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None

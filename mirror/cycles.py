"""Decides by a topic's name whether copying it would make a cycle, as MirrorMaker 2 does."""

from __future__ import annotations

from mirror.policy import IdentityReplicationPolicy, ReplicationPolicy


def is_cycle(policy: ReplicationPolicy, topic: str, *, source: str, target: str) -> bool:
    """Return True if the source's `topic` was copied from the target, or by a flow named as this one.

    Every prefix is walked, whether or not its alias is configured. The source's own alias ends the walk, too:
    a cluster that is called by two aliases, or by different ones in several files, would copy its copies for
    ever (KAFKA-9914). IdentityReplicationPolicy names its source for every topic, so only the target counts.
    """
    ends = {target} if isinstance(policy, IdentityReplicationPolicy) else {source, target}
    return not ends.isdisjoint(policy.upstream_clusters(topic))

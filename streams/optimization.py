"""``topology.optimization``: the names of Kafka's rules, which `streams.graph.optimized` applies."""

from __future__ import annotations

from kafka_client.errors import ConfigError

TOPOLOGY_OPTIMIZATION = "topology.optimization"
NO_OPTIMIZATION, OPTIMIZE = "none", "all"
REUSE_KTABLE_SOURCE_TOPICS = "reuse.ktable.source.topics"
MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
SINGLE_STORE_SELF_JOIN = "single.store.self.join"
RULES = frozenset({REUSE_KTABLE_SOURCE_TOPICS, MERGE_REPARTITION_TOPICS, SINGLE_STORE_SELF_JOIN})


def optimization_rules(setting: str) -> frozenset[str]:
    """Return the rules of a setting: ``none``, ``all``, or names divided by commas.

    Raises ConfigError for any other text.
    """
    names = [name.strip() for name in setting.split(",")]
    if names == [NO_OPTIMIZATION]:
        return frozenset()
    if names == [OPTIMIZE]:
        return RULES
    if not RULES.issuperset(names):
        allowed = f"{NO_OPTIMIZATION}, {OPTIMIZE}, or of {', '.join(sorted(RULES))} some, divided by commas"
        raise ConfigError(TOPOLOGY_OPTIMIZATION, setting, allowed)
    return frozenset(names)

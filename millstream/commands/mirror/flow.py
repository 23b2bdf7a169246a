"""Rows of `millstream mirror checkpoints`, `translate-offset` and `lag`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafka_client.java_properties import read_properties
from millstream.terminal.output import Row
from millstream.terminal.status import UsageError
from mirror.config import LinkSettings, parse_links
from mirror.inspection import PartitionLag, Translation
from mirror.records.checkpoint import Checkpoint

CHECKPOINT_COLUMNS = ("group", "topic", "partition", "source_offset", "offset", "metadata")
TRANSLATION_COLUMNS = ("source_topic", "partition", "source_offset", "topic", "offset")
LAG_COLUMNS = ("topic", "partition", "end", "copied", "lag")


def chosen_flow(config: Path, name: str | None) -> LinkSettings:
    """Return the flow `name` of a properties file, or its only one. Raises ConfigError and UsageError."""
    return flow_and_back(config, name)[0]


def flow_and_back(config: Path, name: str | None) -> tuple[LinkSettings, LinkSettings | None]:
    """Return the chosen flow, and the flow in the other direction if it is enabled too."""
    flows = {each.name: each for each in parse_links(read_properties(config))}
    flow = _chosen(flows, config, name)
    return flow, flows.get(f"{flow.target.alias}->{flow.source.alias}")


def _chosen(flows: Mapping[str, LinkSettings], config: Path, name: str | None) -> LinkSettings:
    if name is None and len(flows) == 1:
        return next(iter(flows.values()))
    if name is None or name not in flows:
        raise UsageError(f"--flow {name or ''} names no flow: {config} enables {', '.join(flows)}")
    return flows[name]


def checkpoint_row(checkpoint: Checkpoint) -> Row:
    """Return the row of a group's position in the target."""
    return {
        "group": checkpoint.consumer_group_id,
        "topic": checkpoint.topic_partition.topic,
        "partition": checkpoint.topic_partition.partition,
        "source_offset": checkpoint.upstream_offset,
        "offset": checkpoint.downstream_offset,
        "metadata": checkpoint.metadata,
    }


def translation_row(translation: Translation) -> Row:
    """Return the row of a translated offset; its offset is None if it cannot be translated."""
    downstream = translation.downstream
    return {
        "source_topic": translation.tp.topic,
        "partition": translation.tp.partition,
        "source_offset": translation.upstream,
        "topic": translation.remote.topic,
        "offset": None if downstream is None or downstream < 0 else downstream,
    }


def untranslated(translation: Translation) -> str | None:
    """Return why an offset has no translation, or None if it has one."""
    place = f"{translation.tp}@{translation.upstream}"
    if translation.downstream is None:
        return f"{place}: the flow has no offset sync of this partition"
    return f"{place}: older than the flow's offset syncs" if translation.downstream < 0 else None


def lag_row(lag: PartitionLag) -> Row:
    """Return the row of a partition's lag; None where it is unknown."""
    return {
        "topic": lag.tp.topic,
        "partition": lag.tp.partition,
        "end": lag.end,
        "copied": lag.copied,
        "lag": lag.lag,
    }

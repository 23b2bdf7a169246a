"""Groups of consumers before Kafka 0.9, which are kept in ZooKeeper: the rows of the `group` commands.

Offsets and members come from ZooKeeper. The log ends, and so the lag, come from brokers if they can be
reached.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kafka_client import PartitionMetadata, TopicPartition
from kafka_client.errors import MillstreamError
from logd.metadata.zookeeper.old_consumers import OldGroup, old_groups, old_members, read_old_group
from logd.metadata.zookeeper.session.session import Session as ZooKeeper
from millstream.terminal.ensemble import registered, zookeeper
from millstream.terminal.output import Row
from millstream.terminal.servers import Servers
from millstream.terminal.session import Session, described
from millstream.terminal.status import NotFound

TYPE: Final = "zookeeper"
"""The type shown for these groups; those in Kafka are classic, consumer and so on."""
_ID: Final = re.compile(r"(.+)-[0-9]{13}-[0-9a-f]{1,8}")
"""The id of such a consumer after its group: host, time (ms) and random digits."""


class OldGroups(NamedTuple):
    """The groups that could be read, the errors of the others by name, and the brokers to ask for offsets."""

    groups: Sequence[OldGroup]
    errors: Mapping[str, MillstreamError]
    servers: Servers

    @property
    def group_count(self) -> int:
        """The number of groups that were to be read."""
        return len(self.groups) + len(self.errors)


async def find_groups(
    session: Session, connect: str, config: Path | None, names: Sequence[str] | None
) -> OldGroups:
    """Return the named groups, or all in ZooKeeper."""
    async with zookeeper(connect, config) as ensemble:
        requested = list(dict.fromkeys(names or await old_groups(ensemble)))
        outcomes = await asyncio.gather(*(_outcome(ensemble, name) for name in requested))
        servers = await registered(ensemble, session.servers)
    by_name = dict(zip(requested, outcomes, strict=True))
    errors = {name: each for name, each in by_name.items() if isinstance(each, MillstreamError)}
    return OldGroups([each for each in outcomes if isinstance(each, OldGroup)], errors, servers)


async def _outcome(ensemble: ZooKeeper, name: str) -> OldGroup | MillstreamError:
    try:
        return await read_group(ensemble, name)
    except MillstreamError as error:
        return error


async def read_group(ensemble: ZooKeeper, name: str) -> OldGroup:
    """Read a group. Raises NotFound if it does not exist, and BadZnode if its data cannot be read."""
    group = await read_old_group(ensemble, name)
    if group is None:
        raise NotFound(f"there is no group {name!r} in ZooKeeper at {ensemble.settings.connect}")
    return group


async def list_rows(connect: str, config: Path | None) -> list[Row]:
    """Return a row for each group for `group list`, with its state in today's terms."""
    async with zookeeper(connect, config) as ensemble:
        names = await old_groups(ensemble)
        members = await old_members(ensemble, names)
    return [
        {"group": name, "state": "Stable" if alive else "Empty", "type": TYPE, "protocol_type": None}
        for name, alive in zip(names, members, strict=True)
    ]


# Offsets in brokers


async def log_ends(session: Session, result: OldGroups) -> dict[TopicPartition, int]:
    """Return the end offsets of the logs. If brokers cannot be reached, warn and return none."""
    tps = {tp for group in result.groups for tp in (*group.offsets, *group.owners)}
    if not tps:
        return {}
    try:
        async with result.servers.client() as client:
            asking = Session(session.form, client, result.servers)
            led = [
                tp for tp, partition in (await known_partitions(asking, tps)).items() if partition.leader >= 0
            ]
            ends = await asking.admin.list_offsets(dict.fromkeys(led, "latest"))
    except (MillstreamError, OSError, TimeoutError) as error:
        session.tell(f"without lag, since brokers do not tell ({described(error)}): give --bootstrap-server")
        return {}
    return {tp: listed.offset for tp, listed in ends.items()}


async def known_partitions(
    session: Session, tps: Collection[TopicPartition]
) -> dict[TopicPartition, PartitionMetadata]:
    """Return the metadata of those partitions that exist in the cluster."""
    topics = (
        await session.client.metadata({tp.topic for tp in tps}, refresh=True, allow_missing=True)
    ).topics
    return {
        tp: topics[tp.topic].partitions[tp.partition]
        for tp in sorted(tps)
        if tp.topic in topics and tp.partition in topics[tp.topic].partitions
    }


# Rows


def offset_rows(group: OldGroup, ends: Mapping[TopicPartition, int]) -> Iterator[Row]:
    """Yield a row for each partition with an offset or an owner, and for each member without partitions."""
    for tp in sorted({*group.offsets, *group.owners}):
        yield _offset_row(group, tp, ends.get(tp), group.owners.get(tp))
    busy = set(map(consumer_of, group.owners.values()))
    for member in sorted(group.members.keys() - busy):
        yield {**_offset_row(group, None, None, None), "consumer_id": member, "host": _host(group, member)}


def _offset_row(
    group: OldGroup, tp: TopicPartition | None, end: int | None, owner: str | None
) -> dict[str, object]:
    offset = group.offsets.get(tp) if tp is not None else None
    consumer = None if owner is None else consumer_of(owner)
    return {
        "group": group.name,
        "topic": tp.topic if tp is not None else None,
        "partition": tp.partition if tp is not None else None,
        "current_offset": offset,
        "log_end_offset": end,
        "lag": max(end - offset, 0) if end is not None and offset is not None else None,
        "consumer_id": consumer,
        "host": None if consumer is None else _host(group, consumer),
        "client_id": None,
        "owner": owner,
    }


def member_rows(group: OldGroup) -> Iterator[Row]:
    """Yield a row for each member."""
    for member, of in sorted(group.members.items()):
        tps = [tp for tp, owner in sorted(group.owners.items()) if consumer_of(owner) == member]
        yield {
            "group": group.name,
            "consumer_id": member,
            "host": _host(group, member),
            "client_id": None,
            "group_instance_id": None,
            "partitions": len(tps),
            "assignment": [str(tp) for tp in tps],
            "subscription": dict(of.subscription),
            "pattern": of.pattern,
        }


def consumer_of(owner: str) -> str:
    """Return the consumer of a thread, whose id is the consumer's with a number appended."""
    return owner.rpartition("-")[0] or owner


def _host(group: OldGroup, consumer: str) -> str | None:
    match = _ID.fullmatch(consumer.removeprefix(f"{group.name}_"))
    return None if match is None else match[1]

"""`kafka-consumer-groups --zookeeper`: groups of consumers before Kafka 0.9, as Kafka 1.0's tool had them.

Kafka's current tools refuse `--zookeeper`. With it, this tool prints the lines of Kafka 1.0's tool, the last
that supported such groups, and always ends with 0. An offset is Kafka's if the group has committed it there
as well, by `dual.commit.enabled`, otherwise ZooKeeper's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from millstream.kafka_tools.options.arguments import Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.running import COMMAND_CONFIG, HELP, VERSION, read_arguments, tell

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.metadata.zookeeper.old_consumers import OldGroup
    from logd.metadata.zookeeper.session.session import Session as ZooKeeper
    from millstream.terminal.servers import Servers

IMPORT = "millstream group import --zookeeper, and then --reset-offsets with --bootstrap-server"
OPTIONS = Options(
    "This tool helps to list the groups of consumers in ZooKeeper, to describe and to delete them.",
    [
        Option("zookeeper", "Where the groups of consumers before Kafka 0.9 are.", "urls"),
        Option("bootstrap-server", "Not with --zookeeper: brokers are found there.", "server to connect to"),
        Option("group", "The group to act on; for --delete, again and again.", "consumer group"),
        Option("topic", "The topic of which groups' offsets and owners are to be deleted.", "topic"),
        Option("list", "List all groups of consumers."),
        Option("describe", "Describe a group, with the records that are not read yet."),
        Option("delete", "Delete groups without members, or what they have of a topic."),
        Option("new-consumer", "Not with --zookeeper."),
        Option("timeout", "Has no effect here.", "timeout (ms)"),
        COMMAND_CONFIG,
        HELP,
        VERSION,
    ],
    old={"reset-offsets": Old(IMPORT)},
)
ACTIONS = ("list", "describe", "delete")
NOTE = (
    "Note: This will only show information about consumers that use ZooKeeper (not those using the Java "
    "consumer API).\n"
)
MISSING = "-"
WIDTHS = {
    "TOPIC": 30,
    "PARTITION": 10,
    "CURRENT-OFFSET": 15,
    "LOG-END-OFFSET": 15,
    "LAG": 10,
    "CONSUMER-ID": 50,
}


def main(arguments: Sequence[str]) -> int:
    """Read the arguments and carry out the one action among them."""
    values = read_arguments(OPTIONS, arguments)
    _check(values)
    tell(NOTE)
    from kafka_client.errors import MillstreamError
    from millstream.terminal.command import run_loop

    try:
        run_loop(_execute(values))
    except (MillstreamError, TimeoutError, OSError) as error:
        _print_error(f"Executing consumer group command failed due to {error}")
    return 0


def _check(values: OptionValues) -> None:
    if values.count(*ACTIONS) != 1:
        values.usage("Command must include exactly one action: --list, --describe, --delete, --reset-offset")
    for option in ("bootstrap-server", "new-consumer"):
        if values.has(option):
            values.usage(f"Option '[{option}]' is not valid with '[zookeeper]'.")
    if values.has("describe"):
        values.required("group")
    if values.has("delete") and not values.has("group", "topic"):
        values.usage("Option [delete] either takes [group], [topic], or both")
    values.excluded("group", "list")
    values.excluded("topic", "list", "describe")


def _print_error(message: str) -> None:
    print(f"Error: {message}")


async def _execute(values: OptionValues) -> None:
    from logd.metadata.zookeeper.old_consumers import old_groups
    from millstream.terminal.ensemble import zookeeper

    async with zookeeper(values.text("zookeeper") or "", None) as ensemble:
        if values.has("list"):
            for name in await old_groups(ensemble):
                print(name)
        elif values.has("describe"):
            await _describe(ensemble, values)
        else:
            await _delete(ensemble, values)


# Describing


async def _describe(ensemble: ZooKeeper, values: OptionValues) -> None:
    from logd.metadata.zookeeper.old_consumers import old_topics, read_old_group

    name = values.texts("group")[0]
    group = await read_old_group(ensemble, name)
    if group is None:
        _print_error(f"The consumer group '{name}' does not exist.")
        return
    tps = await _partitions(ensemble, await old_topics(ensemble, name))
    committed, ends = await _in_kafka(await _servers(ensemble, values), name, tps)
    offsets = {**group.offsets, **committed}
    for tp in tps:
        if tp not in offsets:
            _print_error(
                f"Could not fetch offset from zookeeper for group '{name}' partition '{tp}' due to missing "
                "offset data in zookeeper."
            )
    print()
    _print_row(WIDTHS)
    for tp in tps:
        _print_row(_row(tp, offsets.get(tp), ends.get(tp), group.owners.get(tp)))
    for member in _idle(group):
        _print_row((*[MISSING] * 5, member))


async def _partitions(ensemble: ZooKeeper, topics: Sequence[str]) -> list[TopicPartition]:
    """Return all partitions of the topics that exist in ZooKeeper."""
    from kafka_client.topic_partition import TopicPartition
    from logd.metadata.zookeeper.znodes import paths, topic_znodes

    values = await ensemble.find_all([paths.topic(name) for name in topics])
    return [
        TopicPartition(name, index)
        for name, value in zip(topics, values, strict=True)
        if value is not None
        for index in sorted(topic_znodes.decode_topic(name, value[0]).assignments)
    ]


async def _servers(ensemble: ZooKeeper, values: OptionValues) -> Servers:
    """Return the brokers that are registered in ZooKeeper."""
    from kafka_client.profiles import DEFAULT_SERVERS
    from millstream.kafka_tools.running import read_client_properties
    from millstream.terminal.ensemble import registered
    from millstream.terminal.servers import Servers

    properties = read_client_properties(values.text("command-config"))
    return await registered(ensemble, Servers(DEFAULT_SERVERS, properties, is_named=False))


async def _in_kafka(
    servers: Servers, group: str, tps: Sequence[TopicPartition]
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """Return the offsets committed in Kafka and the log end offsets: both empty if no broker answers."""
    from kafka_client import Admin
    from kafka_client.errors import MillstreamError
    from millstream.commands.group.old_consumers import known_partitions
    from millstream.terminal.output import Format
    from millstream.terminal.session import Session

    if not tps:
        return {}, {}
    try:
        async with servers.client() as client:
            partitions = await known_partitions(Session(Format.TABLE, client, servers), tps)
            led = [tp for tp, partition in partitions.items() if partition.leader >= 0]
            committed, ends = await asyncio.gather(
                Admin(client).list_group_offsets(group, tps),
                Admin(client).list_offsets(dict.fromkeys(led, "latest")),
            )
    except (MillstreamError, TimeoutError, OSError) as error:
        _print_error(f"Could not ask brokers due to {error}")
        return {}, {}
    return (
        {tp: offset.offset for tp, offset in committed.items()},
        {tp: offset.offset for tp, offset in ends.items()},
    )


def _row(tp: TopicPartition, offset: int | None, end: int | None, owner: str | None) -> Iterable[object]:
    from millstream.commands.group.old_consumers import consumer_of

    lag = None if end is None or offset is None or offset == -1 else end - offset
    return (*tp, offset, end, lag, None if owner is None else consumer_of(owner))


def _idle(group: OldGroup) -> list[str]:
    """Return the members without a partition, once for each topic that they subscribe to."""
    from millstream.commands.group.old_consumers import consumer_of

    busy = set(map(consumer_of, group.owners.values()))
    return [name for name, of in sorted(group.members.items()) if name not in busy for _ in of.subscription]


def _print_row(cells: Iterable[Any]) -> None:
    shown = zip(cells, WIDTHS.values(), strict=True)
    print(" ".join(f"{MISSING if cell is None else cell!s:<{width}}" for cell, width in shown))


# Deleting


async def _delete(ensemble: ZooKeeper, values: OptionValues) -> None:
    from logd.metadata.zookeeper.old_consumers import delete_old_group, old_groups, old_topics

    groups, topic = values.texts("group"), values.text("topic")
    if not groups:
        for name in await old_groups(ensemble):
            if topic in await old_topics(ensemble, name):
                await delete_old_group(ensemble, name, topic)
        print(
            "Deleted consumer group information for all inactive consumer groups for topic "
            f"'{topic}' in zookeeper."
        )
    for name in groups:
        await _delete_group(ensemble, name, topic)


async def _delete_group(ensemble: ZooKeeper, name: str, topic: str | None) -> None:
    from logd.metadata.zookeeper.errors import NoNode
    from logd.metadata.zookeeper.old_consumers import delete_old_group

    what = f"group '{name}'" + (f" topic '{topic}'" if topic is not None else "")
    try:
        is_deleted = await delete_old_group(ensemble, name, topic)
    except NoNode:
        _print_error(f"Delete for {what} failed because group does not exist.")
        return
    if not is_deleted:
        _print_error(f"Delete for {what} failed because its consumers are still active.")
        return
    all_of = "" if topic is not None else "all "
    print(f"Deleted {all_of}consumer group information for {what} in zookeeper.")

"""`kafka-get-offsets`: offsets of partitions, as GetOffsetShell prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import JavaError, terse
from millstream.kafka_tools.java.java_integers import parse_integer, parse_long
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.options.topic_filter import INTERNAL, TopicFilter
from millstream.kafka_tools.running import (
    COMMAND_CONFIG,
    HELP,
    VERSION,
    Cluster,
    read_arguments,
    tell,
    tell_notes,
    tool,
)

if TYPE_CHECKING:
    from kafka_client import TopicPartition
    from millstream.terminal.session import Session

OPTIONS = Options(
    "An interactive shell for getting topic-partition offsets.",
    [
        Option("bootstrap-server", "REQUIRED. The brokers to ask.", "HOST1:PORT1,...,HOST3:PORT3"),
        Option(
            "topic-partitions",
            "Patterns of topics and partitions: a regular expression for the topic, and behind a colon a "
            "partition, NUMBER-NUMBER (without the second), NUMBER- or -NUMBER.",
            "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        ),
        Option("topic", "A regular expression of topics.", "topic"),
        Option("partitions", "Only these partitions.", "partition ids"),
        Option(
            "time",
            "Which offset: that of a time in ms, or one of the words.",
            "<timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / "
            "-5 or latest-tiered / -6 or earliest-pending-upload",
        ),
        COMMAND_CONFIG,
        Option("exclude-internal-topics", "Without internal topics."),
        HELP,
        VERSION,
    ],
    old={"zookeeper": ZOOKEEPER, "broker-list": Old("--bootstrap-server", "bootstrap-server")},
)

PATTERN = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
ANY_TOPIC = ".*"
WORDS = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
UNKNOWN = -1
"""The offset in a response if no record has the timestamp or a later one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that admits partitions by topic and number."""

    topics: TopicFilter
    admits_partition: Callable[[int], bool]

    def admits_topic(self, topic: str) -> bool:
        """Return True if the rule may admit partitions of the topic."""
        return self.topics.admits(topic, exclude_internal=False)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and print the offsets."""
    try:
        _execute(_read(arguments))
    except JavaError as error:
        tell(f"Error occurred: {error.caught}")
        tell_notes(error)
        return 1
    return 0


def _read(arguments: Sequence[str]) -> OptionValues:
    values = read_arguments(OPTIONS, arguments)
    values.required("bootstrap-server")
    check_bootstrap(values)
    return values


def check_bootstrap(values: OptionValues) -> None:
    """End with the usage unless each server is host:port."""
    servers = values.text("bootstrap-server") or ""
    if not servers.strip():
        values.usage("Error while validating the bootstrap address\n")
    # As Java's split, which leaves out what is empty at the end.
    if not all(re.search(r"^.+:\d+$", server) for server in servers.rstrip(",").split(",")):
        values.usage("Please provide valid host:port like host1:9091,host2:9092\n")


def _execute(values: OptionValues) -> None:
    if values.has("topic-partitions") and values.has("topic", "partitions"):
        raise terse("--topic-partitions cannot be used with --topic or --partitions")
    spec = parse_time(values.text("time") or "latest")
    rules = _rules(values)
    cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))

    async def work(session: Session) -> None:
        tps = await _partitions(session, rules, values.has("exclude-internal-topics"))
        if not tps:
            raise terse("Could not match any topic-partitions with the specified filters")
        for tp, offset in await _offsets(session, tps, spec):
            print(f"{tp.topic}:{tp.partition}:{offset}")

    cluster.run(work)


def parse_time(text: str) -> int:
    """Return the timestamp of a ListOffsets request. Raises JavaError for an unknown word."""
    if text in WORDS:
        return WORDS[text]
    try:
        return parse_long(text)
    except ValueError:
        raise terse(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or "
            "a specified long format timestamp"
        ) from None


def _rules(values: OptionValues) -> list[Rule]:
    if (patterns := values.text("topic-partitions")) is not None:
        return [_rule(pattern) for pattern in patterns.split(",")]
    partitions = values.text("partitions") or ""
    try:
        numbers = {parse_integer(each) for each in partitions.split(",")} if partitions else set()
    except ValueError:
        raise terse(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            + partitions
        ) from None
    return [Rule(TopicFilter(values.text("topic") or ANY_TOPIC), lambda p: not numbers or p in numbers)]


def _rule(text: str) -> Rule:
    if (match := PATTERN.fullmatch(text)) is None:
        problem = terse(f"Invalid rule specification: {text}")
        raise JavaError("java.lang.RuntimeException", problem.full_text)
    topic, one, low, high = match.groups()
    topics = TopicFilter(topic or ANY_TOPIC)
    if one:
        return Rule(topics, lambda partition: partition == int(one))
    return Rule(topics, lambda p: int(low or 0) <= p and (not high or p < int(high)))


async def _partitions(
    session: Session, rules: Sequence[Rule], exclude_internal: bool
) -> list[TopicPartition]:
    from kafka_client import TopicPartition

    names = [
        name
        for name, topic in (await session.admin.list_topics()).items()
        if not (exclude_internal and (topic.is_internal or name in INTERNAL))
        and any(rule.admits_topic(name) for rule in rules)
    ]
    topics = await session.admin.describe_topics(names) if names else {}
    return [
        TopicPartition(name, partition)
        for name, topic in topics.items()
        for partition in topic.partitions
        if any(rule.admits_topic(name) and rule.admits_partition(partition) for rule in rules)
    ]


async def _offsets(
    session: Session, tps: Sequence[TopicPartition], spec: int
) -> list[tuple[TopicPartition, int]]:
    """Return offsets, sorted by the partitions' names.

    Partitions with errors are reported and left out, partitions without an offset only left out.
    """
    from kafka_client.errors import KafkaError

    try:
        listing = await session.admin.list_offsets(dict.fromkeys(tps, spec))
    except KafkaError:
        offsets = await _one_by_one(session, tps, spec)
    else:
        offsets = {tp: listed.offset for tp, listed in listing.items()}
    return sorted(((tp, at) for tp, at in offsets.items() if at != UNKNOWN), key=lambda pair: str(pair[0]))


async def _one_by_one(
    session: Session, tps: Sequence[TopicPartition], spec: int
) -> dict[TopicPartition, int]:
    """Return the offsets of the partitions that have no error, and report the others' errors."""
    from kafka_client.errors import KafkaError
    from millstream.kafka_tools.java.java_errors import of_answer

    offsets = {}
    for tp in tps:
        try:
            offsets[tp] = (await session.admin.list_offsets({tp: spec}))[tp].offset
        except KafkaError as error:
            tell(f"Skip getting offsets for topic-partition {tp} due to error: {of_answer(error).full_text}")
    return offsets


app = tool(OPTIONS, main)

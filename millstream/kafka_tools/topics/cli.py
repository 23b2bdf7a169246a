"""The arguments of `kafka-topics`, and which action they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.kafka_tools.java.java_errors import JavaError, illegal_argument
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.running import (
    COMMAND_CONFIG,
    HELP,
    VERSION,
    Cluster,
    failed,
    read_arguments,
    tell,
    tool,
)

_BY_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"

OPTIONS = Options(
    "This tool helps to create, delete, describe, or change a topic.",
    [
        Option("bootstrap-server", "REQUIRED: The Kafka server to connect to.", "server to connect to"),
        COMMAND_CONFIG,
        Option("list", "List all topics."),
        Option("create", "Create a topic."),
        Option("delete", "Delete a topic."),
        Option("alter", f"Alter how many partitions there are.{_BY_CONFIGS}"),
        Option("describe", "List the details of topics."),
        Option(
            "topic",
            "The topic to create, alter, describe or delete; except with --create, a regular expression.",
            "topic",
        ),
        Option("topic-id", "The id of the topic to describe.", "topic-id"),
        Option("config", f"A setting of the topic to create.{_BY_CONFIGS}", "name=value"),
        Option("delete-config", "Has no effect any more.", "name"),
        Option(
            "partitions", "How many partitions the topic has, or is to have with --alter.", "# of partitions"
        ),
        Option("replication-factor", "How many replicas each partition has.", "replication factor"),
        Option(
            "replica-assignment",
            "The brokers of each partition.",
            "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , broker_id_for_part2_replica1 : "
            "broker_id_for_part2_replica2 , ...",
        ),
        Option("under-replicated-partitions", "Describe only partitions that lack in-sync replicas."),
        Option("unavailable-partitions", "Describe only partitions whose leader is not available."),
        Option(
            "under-min-isr-partitions",
            "Describe only partitions with less in-sync replicas than there must be.",
        ),
        Option(
            "at-min-isr-partitions",
            "Describe only partitions with just as many in-sync replicas as there must be.",
        ),
        Option("topics-with-overrides", "Describe only topics that have settings of their own."),
        Option("if-exists", "Alter, delete or describe the topic only if it is there."),
        Option("if-not-exists", "Create the topic only if it is not there."),
        Option("exclude-internal", "List or describe without internal topics."),
        Option(
            "partition-size-limit-per-response",
            "How many partitions one answer to describe has at most.",
            "maximum number of partitions per response",
        ),
        HELP,
        VERSION,
    ],
    old={
        "zookeeper": ZOOKEEPER,
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
    },
)

ACTIONS = ("alter", "create", "describe", "list", "delete")
CALLS = dict.fromkeys(ACTIONS, "listTopics") | {"create": "createTopics"}
"""The admin client's call, by action, that is the first to wait for a broker."""
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments and carry out the one action among them."""
    try:
        values = _read(arguments)
        cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
    except JavaError as error:
        return failed(str(error), error)
    return _execute(values, cluster)


def _read(arguments: Sequence[str]) -> OptionValues:
    values = read_arguments(OPTIONS, arguments, "Create, delete, describe, or change a topic.")
    if values.count(*ACTIONS) != 1:
        values.usage(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if values.has("delete-config"):
        tell(
            "delete-config option is no longer supported and deprecated since version 4.0. "
            "The config will be fully removed in future releases."
        )
    _check_required(values)
    _check_excluded(values)
    return values


def _check_required(values: OptionValues) -> None:
    if not values.has("bootstrap-server"):
        raise illegal_argument("--bootstrap-server must be specified")
    if values.has("describe") and values.has("if-exists"):
        if not values.has("topic", "topic-id"):
            values.usage("--topic or --topic-id is required to describe a topic")
        if values.count("topic", "topic-id") == 2:
            print(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID"
            )
    if not values.has("list", "describe"):
        values.required("topic")
    if values.has("alter"):
        if values.has("config"):
            values.usage(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option "[alter]"'
                + _BY_CONFIGS
            )
        values.required("partitions")


def _check_excluded(values: OptionValues) -> None:
    def only_with(option: str, *actions: str) -> None:
        values.excluded(option, *(action for action in ACTIONS if action not in actions))

    only_with("config", "alter", "create")
    only_with("partitions", "alter", "create")
    only_with("replication-factor", "create")
    only_with("replica-assignment", "alter", "create")
    if values.has("create"):
        values.excluded("replica-assignment", "partitions", "replication-factor")
    for report in REPORTS:
        only_with(report, "describe")
        values.excluded(report, "topics-with-overrides")
    only_with("topics-with-overrides", "describe")
    values.excluded("topics-with-overrides", *REPORTS)
    only_with("if-exists", "alter", "delete", "describe")
    only_with("if-not-exists", "create")
    only_with("exclude-internal", "list", "describe")


def _execute(values: OptionValues, cluster: Cluster) -> int:
    from millstream.kafka_tools.topics import actions
    from millstream.kafka_tools.topics.describe import describe_topics

    work = {
        "create": actions.create_topic,
        "alter": actions.alter_topics,
        "list": actions.list_topics,
        "describe": describe_topics,
        "delete": actions.delete_topics,
    }
    (action,) = (name for name in ACTIONS if values.has(name))
    try:
        cluster.run(lambda session: work[action](session, values), CALLS[action])
    except JavaError as error:
        print(f"Error while executing topic command : {error}")
        return 1
    return 0


app = tool(OPTIONS, main)

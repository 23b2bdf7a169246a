"""`kafka-leader-election`: elections of partitions' leaders, as LeaderElectionCommand has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from millstream.kafka_tools.java.java_errors import (
    JavaError,
    admin_operation,
    command_failed,
    java_error,
    of_answer,
)
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Old, Options, OptionValues, option_error
from millstream.kafka_tools.options.json_document import parse_json
from millstream.kafka_tools.options.json_file import read_file
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.running import HELP, VERSION, Cluster, failed, read_arguments, tell, tool

if TYPE_CHECKING:
    from kafka_client import TopicPartition
    from millstream.commands.partition.elect import Elections
    from millstream.terminal.session import Session

OPTIONS = Options(
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported "
    "are preferred replicas and unclean replicas.",
    [
        Option("bootstrap-server", "REQUIRED: The brokers to connect to.", "host:port"),
        Option("command-config", "A file with properties of the admin client.", "config file"),
        Option("admin.config", "Deprecated: --command-config.", "config file"),
        Option(
            "path-to-json-file",
            'A file with the partitions: {"partitions": [{"topic": "foo", "partition": 1}]}.',
            "Path to JSON file",
        ),
        Option("topic", "The topic of the partition.", "topic name"),
        Option("partition", "The partition; needed with --topic.", "partition id"),
        Option("all-topic-partitions", "Wherever an election is needed."),
        Option(
            "election-type",
            "REQUIRED: preferred, the first replica if it is in sync; or unclean, any replica where none is.",
            "election type",
        ),
        HELP,
        VERSION,
    ],
    old={
        "zookeeper": ZOOKEEPER,
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
        "preferred-replica-election": Old("--election-type preferred", None, has_value=False),
    },
)
WHICH = ("topic", "all-topic-partitions", "path-to-json-file")
TYPES = ("PREFERRED", "UNCLEAN")


def main(arguments: Sequence[str]) -> int:
    """Elect leaders. Return 1 if an election failed."""
    try:
        values = read_arguments(OPTIONS, _with_type(arguments))
        kind = _checked_type(values)
        partitions = _partitions(values)
        if values.has("admin.config"):
            print(
                "Option --admin.config has been deprecated and will be removed in a future version. "
                "Use --command-config instead."
            )
        file = values.text("command-config") or values.text("admin.config")
        cluster = Cluster.create(values.text("bootstrap-server") or "", file)

        async def work(session: Session) -> None:
            await _elect(session, kind, partitions)

        cluster.run(work, "electLeaders")
    except JavaError as error:
        return failed(str(error), error)
    return 0


def _with_type(arguments: Sequence[str]) -> list[str]:
    """Replace `--preferred-replica-election`, of kafka-preferred-replica-election.sh, by today's option."""
    rest: list[str] = []
    for argument in arguments:
        if argument == "--preferred-replica-election":
            tell("note: --preferred-replica-election is --election-type preferred today")
            rest += ["--election-type", "preferred"]
        else:
            rest.append(argument)
    return rest


def _checked_type(values: OptionValues) -> str:
    """Return the type of election. Raises JavaError for options that are missing or contradict each other."""
    if missing := [name for name in ("bootstrap-server", "election-type") if not values.has(name)]:
        raise command_failed(f"Missing required option(s): {', '.join(missing)}")
    values.excluded("admin.config", "command-config")
    if values.count(*WHICH) != 1:
        raise command_failed(f"One and only one of the following options is required: {', '.join(WHICH)}")
    if values.has("topic") and not values.has("partition"):
        raise command_failed("Missing required option(s): partition")
    if values.has("partition") and not values.has("topic"):
        raise command_failed("Option partition is only allowed if topic is used")
    kind = values.text("election-type") or ""
    if kind.upper() not in TYPES:
        raise option_error(
            "OptionArgumentConversion", f"Cannot parse argument '{kind}' of option election-type"
        )
    return kind.upper()


def _partitions(values: OptionValues) -> list[TopicPartition] | None:
    """Return the partitions to elect leaders of, or None for all that need an election."""
    from kafka_client import TopicPartition

    if (file := values.text("path-to-json-file")) is not None:
        return _of_file(file)
    topic, partition = values.text("topic"), values.integer("partition")
    return None if topic is None or partition is None else [TopicPartition(topic, partition)]


def _of_file(file: str) -> list[TopicPartition]:
    from kafka_client import TopicPartition

    try:
        text = read_file(file)
    except JavaError as error:
        raise JavaError("java.lang.RuntimeException", error.full_text) from None
    listed = parse_json(text, "Replica election data is empty").get("partitions")
    if listed is None:
        raise admin_operation('Replica election data is missing "partitions" field')
    tps = [
        TopicPartition(each.field("topic").text(), each.field("partition").integer())
        for each in listed.elements()
    ]
    if twice := {str(tp) for tp in tps if tps.count(tp) > 1}:
        shown = f"[{', '.join(sorted(twice))}]"
        raise admin_operation(f"Replica election data contains duplicate partitions: {shown}")
    return tps


async def _elect(session: Session, kind: str, partitions: list[TopicPartition] | None) -> None:
    from kafka_client import ElectionType
    from kafka_client.errors import ErrorCode, KafkaError, RequestTimedOut
    from millstream.commands.partition.elect import elect

    try:
        result = await elect(session.admin, ElectionType[kind], partitions)
    except RequestTimedOut:
        raise _failed("Timeout waiting for election results") from None
    except KafkaError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise _failed("Not authorized to perform leader election") from None
        raise java_error(error, "electLeaders") from error
    _tell(kind, result)


def _failed(message: str) -> JavaError:
    print(message)
    return command_failed(message)


def _tell(kind: str, result: Elections) -> None:
    """Print the result of each partition. Raises JavaError if an election failed."""
    if result.elected:
        listed = ", ".join(map(str, result.elected))
        print(f"Successfully completed leader election ({kind}) for partitions {listed}")
    if result.not_needed:
        listed = ", ".join(map(str, result.not_needed))
        print(f"Valid replica already elected for partitions {listed}")
    for tp, error in result.failed.items():
        text = of_answer(error).full_text
        print(f"Error completing leader election ({kind}) for partition: {tp}: {text}")
    if result.failed:
        raise command_failed(f"{len(result.failed)} replica(s) could not be elected")


app = tool(OPTIONS, main)

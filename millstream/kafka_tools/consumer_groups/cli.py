"""The arguments of `kafka-consumer-groups`, and which action they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.kafka_tools.consumer_groups.terms import SCENARIOS, print_error
from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.options.arguments import Ended, Old, Options, OptionValues
from millstream.kafka_tools.options.option import Option
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

OPTIONS = Options(
    "This tool helps to list, describe, delete and manage the offsets of consumer groups.",
    [
        Option(
            "bootstrap-server",
            "REQUIRED for all options except for --validate-regex: brokers to ask.",
            "server to connect to",
        ),
        Option("group", "The group to act on; may be given again and again.", "consumer group"),
        Option(
            "topic",
            "The topic whose offsets are to be deleted or reset, with its partitions: topic1:0,1,2.",
            "topic",
        ),
        Option("all-topics", "Reset the offsets of all topics that the group has offsets of."),
        Option("list", "List all groups of consumers."),
        Option("describe", "Describe groups, with the offsets that are not read yet."),
        Option("all-groups", "Act on all groups."),
        Option("delete", "Delete groups with their offsets."),
        Option("timeout", "How long a call may take.", "timeout (ms)"),
        COMMAND_CONFIG,
        Option("reset-offsets", "Set the offsets of groups that have no members."),
        Option("delete-offsets", "Delete a group's offsets of topics."),
        Option("dry-run", "Only show to which offsets they would be reset."),
        Option("execute", "Reset the offsets."),
        Option("export", "Print the offsets as CSV."),
        Option("to-offset", "Reset to an offset.", "offset"),
        Option("from-file", "Reset to the offsets of a CSV file.", "path to CSV file"),
        Option("to-datetime", "Reset to the offset of a time: YYYY-MM-DDThh:mm:ss.sss.", "datetime"),
        Option("by-duration", "Reset to the offset of so long ago: PnDTnHnMnS.", "duration"),
        Option("to-earliest", "Reset to the first offset."),
        Option("to-latest", "Reset to the last offset."),
        Option("to-current", "Reset to the current offset."),
        Option("shift-by", "Shift the current offset.", "number-of-offsets"),
        Option("members", "Describe the group's members.", available_with=("describe",)),
        Option("verbose", "Describe with more details.", available_with=("describe",)),
        Option(
            "offsets",
            "Describe the group's offsets, which is what is described anyway.",
            available_with=("describe",),
        ),
        Option(
            "state",
            "Describe the group's state; list groups with their states, or those in some states.",
            "String",
            optional=True,
            available_with=("describe", "list"),
        ),
        Option(
            "type",
            "List groups with their types, or those of some types.",
            "String",
            optional=True,
            available_with=("list",),
        ),
        Option("validate-regex", "Say whether an expression is one of RE2's.", "regex"),
        HELP,
        VERSION,
    ],
    old={
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
        "new-consumer": Old("there are no other ones", is_ignored=True, has_value=False),
    },
)

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
GROUPS = ("group", "all-groups")
CALLS = {
    "list": "findAllBrokers",
    "describe": "describeConsumerGroups(api=FIND_COORDINATOR)",
    "delete": "deleteConsumerGroups(api=FIND_COORDINATOR)",
    "reset-offsets": "describeConsumerGroups(api=FIND_COORDINATOR)",
    "delete-offsets": "deleteConsumerGroupOffsets(api=FIND_COORDINATOR)",
}
"""The admin client's call, by action, that is the first to wait for a broker."""
NO_BROKERS = (
    "java.util.concurrent.ExecutionException: org.apache.kafka.common.KafkaException: Failed to find brokers "
    "to send ListGroups"
)
NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command "
    "will require either --dry-run or --execute to be specified. You should add the --dry-run option "
    "explicitly if you are scripting this command and want to keep the current default behavior without "
    "prompting."
)


def main(arguments: Sequence[str]) -> int:
    """Read the arguments and carry out the one action among them."""
    if any(argument.partition("=")[0] in ("-zookeeper", "--zookeeper") for argument in arguments):
        from millstream.kafka_tools.consumer_groups import old_consumers

        return old_consumers.main(arguments)
    values = read_arguments(OPTIONS, arguments)
    _check(values)
    if values.count(*ACTIONS) != 1:
        named = ", ".join(f"--{action}" for action in ACTIONS)
        values.usage(f"Command must include exactly one action: {named}")
    try:
        _execute(values)
    except JavaError as error:
        if error.java_class == "java.lang.IllegalArgumentException" and not error.from_future:
            raise Ended(1, str(error), usage=True) from None
        print_error(f"Executing consumer group command failed due to {error.caught}")
        tell(error.thrown)
        tell_notes(error)
    return 0


def _shown(names: Iterable[str]) -> str:
    return ", ".join(f"[{name}]" for name in names)


def _check(values: OptionValues) -> None:
    if not values.has("validate-regex"):
        values.required("bootstrap-server")
    _check_describe(values)
    if values.has("delete"):
        _needs_groups(values, "delete")
        if values.has("topic"):
            values.usage(
                "The consumer does not support topic-specific offset deletion from a consumer group."
            )
    if values.has("delete-offsets") and values.count("group", "topic") < 2:
        needed = _shown(("group", "topic"))
        values.usage(f"Option [delete-offsets] takes the following options: {needed}")
    _check_reset(values)
    values.excluded("group", "all-groups", "list")
    values.excluded("topic", "describe", "list")


def _needs_groups(values: OptionValues, action: str) -> None:
    if not values.has(*GROUPS):
        values.usage(f"Option [{action}] takes one of these options: {_shown(sorted(GROUPS))}")


def _check_describe(values: OptionValues) -> None:
    if not values.has("describe"):
        return
    _needs_groups(values, "describe")
    what = ("members", "offsets", "state")
    if values.count(*what) > 1:
        values.usage(f"Option [describe] takes at most one of these options: {_shown(what)}")
    if values.text("state") is not None:
        values.usage("Option [describe] does not take a value for [state]")


def _check_reset(values: OptionValues) -> None:
    if not values.has("reset-offsets"):
        return
    if values.count("dry-run", "execute") == 2:
        values.usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not values.has("dry-run", "execute"):
        tell(NO_ACTION)
    _needs_groups(values, "reset-offsets")
    for scenario in (
        "to-offset",
        "to-datetime",
        "by-duration",
        "to-earliest",
        "to-latest",
        "to-current",
        "shift-by",
        "from-file",
    ):
        values.excluded(scenario, *(each for each in sorted(SCENARIOS) if each != scenario))


def _execute(values: OptionValues) -> None:
    if values.has("validate-regex"):
        from millstream.kafka_tools.consumer_groups.regex import validate

        validate(values.text("validate-regex") or "")
        return
    from millstream.kafka_tools.consumer_groups.delete import delete_groups, delete_offsets, tell_unreachable
    from millstream.kafka_tools.consumer_groups.describe import describe_groups, list_groups
    from millstream.kafka_tools.consumer_groups.reset import reset_offsets

    work = {
        "list": list_groups,
        "describe": describe_groups,
        "delete": delete_groups,
        "reset-offsets": reset_offsets,
        "delete-offsets": delete_offsets,
    }
    (action,) = (name for name in ACTIONS if values.has(name))
    cluster = _cluster(values)
    try:
        cluster.run(lambda session: work[action](session, values), CALLS[action])
    except JavaError as error:
        if not error.is_unreachable:
            raise
        if action == "list" or values.has("all-groups"):
            raise JavaError("java.lang.RuntimeException", NO_BROKERS) from None
        if action != "delete":
            raise
        tell_unreachable(values, error)


def _cluster(values: OptionValues) -> Cluster:
    try:
        return Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
    except JavaError as error:
        if error.java_class.startswith("java.nio"):
            raise JavaError("java.lang.RuntimeException", error.full_text) from None
        raise


app = tool(OPTIONS, main)

"""`kafka-reassign-partitions`: moves of partitions to other brokers, by ReassignPartitionsCommand."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.kafka_tools.java.java_errors import COMMON, JavaError
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Options, OptionValues
from millstream.kafka_tools.options.option import Option
from millstream.kafka_tools.running import HELP, VERSION, Cluster, read_arguments, tell_notes, tool

OPTIONS = Options(
    "This tool helps to move topic partitions between replicas.",
    [
        Option("verify", "Tell whether moves are done; if they are, take the throttles away."),
        Option("generate", "Propose where partitions could be."),
        Option("execute", "Begin moves."),
        Option("cancel", "Stop moves."),
        Option("list", "List the moves under way."),
        Option(
            "bootstrap-server",
            "The brokers to connect to.",
            "Server(s) to use for bootstrapping",
            optional=True,
        ),
        Option(
            "command-config",
            "A file with properties of the admin client.",
            "Admin client property file",
        ),
        Option(
            "reassignment-json-file",
            'A file with the moves: {"partitions": [{"topic": "foo", "partition": 1, "replicas": [1,2,3]}], '
            '"version": 1}.',
            "manual assignment json file path",
        ),
        Option(
            "topics-to-move-json-file",
            'A file with topics for --generate: {"topics": [{"topic": "foo"}], "version": 1}.',
            "topics to reassign json file path",
        ),
        Option("broker-list", "The brokers that --generate may choose: 0,1,2.", "brokerlist"),
        Option(
            "bootstrap-controller",
            "Not taken: give --bootstrap-server.",
            "bootstrap controller to connect to",
            optional=True,
        ),
        Option("disable-rack-aware", "Pay no heed to racks in --generate."),
        Option("throttle", "Bytes a second that brokers send one another for the moves.", "throttle"),
        Option(
            "replica-alter-log-dirs-throttle",
            "Bytes a second that brokers copy between their log folders for the moves.",
            "replicaAlterLogDirsThrottle",
        ),
        Option(
            "timeout",
            "How many milliseconds moves between log folders may take to be started: 10000.",
            "timeout",
        ),
        Option("additional", "Begin moves besides those under way."),
        Option("preserve-throttles", "Leave the throttles as they are."),
        Option("disallow-replication-factor-change", "Refuse moves that change how many replicas there are."),
        HELP,
        VERSION,
    ],
    old={"zookeeper": ZOOKEEPER},
)
ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED = {
    "verify": ("reassignment-json-file",),
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
PERMITTED = {
    "verify": ("bootstrap-server", "command-config", "preserve-throttles"),
    "generate": ("bootstrap-server", "command-config", "disable-rack-aware"),
    "execute": (
        "additional",
        "bootstrap-server",
        "command-config",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "cancel": ("bootstrap-server", "bootstrap-controller", "command-config", "preserve-throttles", "timeout"),
    "list": ("bootstrap-server", "bootstrap-controller", "command-config"),
}


def main(arguments: Sequence[str]) -> int:
    """Carry out the one action among the arguments."""
    from millstream.kafka_tools.reassign_partitions import actions

    values = read_arguments(OPTIONS, arguments)
    action = _checked_action(values)
    if values.has("bootstrap-controller"):
        values.usage(
            "--bootstrap-controller is not taken: this client talks to brokers. Give --bootstrap-server"
        )
    work = getattr(actions, "list_moves" if action == "list" else action)
    try:
        for name in ("throttle", "replica-alter-log-dirs-throttle", "timeout"):
            values.integer(name, 64)
        cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
        cluster.run(lambda session: work(session, values), "listPartitionReassignments")
    except actions.Terse as error:
        print(error)
        return 1
    except JavaError as error:
        print(f"Error: {error.full_text if error.java_class.startswith(COMMON) else error}")
        tell_notes(error)
        return 1
    return 0


def _checked_action(values: OptionValues) -> str:
    """Return the action. End the tool if other options do not go with it."""
    actions = [action for action in ACTIONS if values.has(action)]
    if len(actions) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS)
        values.usage(f"Command must include exactly one action: {listed}")
    (action,) = actions
    servers = values.count("bootstrap-server", "bootstrap-controller")
    if servers == 2:
        values.usage("Please don't specify both --bootstrap-server and --bootstrap-controller")
    if servers == 0:
        values.usage("Please specify either --bootstrap-server or --bootstrap-controller")
    values.required(*REQUIRED[action])
    for option in OPTIONS.options:
        if values.has(option.name) and option.name not in (action, *REQUIRED[action], *PERMITTED[action]):
            values.usage(f'Option "{option}" can\'t be used with action "[{action}]"')
    return action


app = tool(OPTIONS, main)

"""The arguments of `kafka-configs`, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.kafka_tools.configs.entities import (
    BROKER,
    CLIENT,
    IP,
    LOGGER,
    TOPIC,
    USER,
    check_arguments,
    entity_names,
    entity_types,
)
from millstream.kafka_tools.java.java_errors import JavaError, illegal_argument
from millstream.kafka_tools.options.arguments import ZOOKEEPER, Old, Options, OptionValues
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
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
    "client-metrics or group",
    [
        Option("bootstrap-server", "The brokers to ask.", "server to connect to"),
        Option("bootstrap-controller", "Controllers to ask; not supported here.", "controller to connect to"),
        COMMAND_CONFIG,
        Option("alter", "Alter the entity's settings."),
        Option("describe", "List the entity's settings."),
        Option("all", "List all settings, also those that nobody has set."),
        Option(
            "entity-type",
            "topics, clients, users, brokers, broker-loggers, ips, client-metrics or groups.",
            "String",
        ),
        Option("entity-name", "Which one of that type.", "String"),
        Option("entity-default", "What holds for all clients, users, brokers or ips."),
        Option(
            "add-config",
            "Settings to add: k1=v1,k2=[v1,v2,v2],k3=v3, with brackets around values that have commas.",
            "String",
        ),
        Option("add-config-file", "A file of settings to add.", "String"),
        Option("delete-config", "Keys of settings to delete: k1,k2.", "String", separator=","),
        Option("topic", "The topic's name.", "String"),
        Option("client", "The client's id.", "String"),
        Option("client-defaults", "What holds for all clients."),
        Option("user", "The user's principal name.", "String"),
        Option("user-defaults", "What holds for all users."),
        Option("broker", "The broker's id.", "String"),
        Option("broker-defaults", "What holds for all brokers."),
        Option("broker-logger", "The id of the broker whose loggers are meant.", "String"),
        Option("ip-defaults", "What holds for all IP addresses."),
        Option("ip", "The IP address.", "String"),
        Option("group", "The group's id.", "String"),
        Option("client-metrics", "The name of a configuration of clients' metrics.", "String"),
        HELP,
        VERSION,
    ],
    old={
        "zookeeper": ZOOKEEPER,
        "broker-list": Old("--bootstrap-server", "bootstrap-server"),
        "force": Old("nothing is asked anyway", is_ignored=True, has_value=False),
    },
)

WITHOUT_CLASS = (
    "java.lang.IllegalArgumentException",
    "java.lang.NumberFormatException",
    "org.apache.kafka.common.errors.InvalidConfigurationException",
    "org.apache.kafka.common.errors.InvalidTopicException",
    "org.apache.kafka.common.errors.UnsupportedVersionException",
)
"""Java classes of the errors that are printed without their class."""


def main(arguments: Sequence[str]) -> int:
    """Read the arguments, and describe or alter an entity."""
    try:
        values = read_arguments(OPTIONS, arguments)
        check_arguments(values)
        _execute(values)
    except JavaError as error:
        is_terse = error.java_class in WITHOUT_CLASS or error.java_class.startswith("joptsimple.")
        if is_terse and not error.from_future:
            tell(str(error))
        else:
            line = f"Error while executing config command with args '{' '.join(arguments)}'"
            tell(line)
            if not error.message or error.message not in line:
                tell(error.thrown)
        tell_notes(error)
        return 1
    return 0


def _execute(values: OptionValues) -> None:
    from millstream.kafka_tools.configs.alter import alter
    from millstream.kafka_tools.configs.describe import describe

    if values.has("bootstrap-controller"):
        raise illegal_argument(
            "--bootstrap-controller is not supported: give --bootstrap-server, brokers ask their controllers"
        )
    cluster = Cluster.create(values.text("bootstrap-server") or "", values.text("command-config"))
    if values.has("alter") and len(entity_types(values)) != len(entity_names(values)):
        raise illegal_argument("An entity name must be specified for every entity type")
    work = alter if values.has("alter") else describe
    cluster.run(lambda session: work(session, values), _first_call(values))


def _first_call(values: OptionValues) -> str:
    """Return the admin client's call that is the first to wait for a broker."""
    (type, *_), names = entity_types(values), entity_names(values)
    if type in (USER, CLIENT, IP):
        return "describeClientQuotas"
    if values.has("alter") or (names and values.has("all")):
        return "describeConfigs"
    return {TOPIC: "listTopics", BROKER: "listNodes", LOGGER: "listNodes"}.get(type, "findAllBrokers")


app = tool(OPTIONS, main)

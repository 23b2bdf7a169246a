"""The entities that settings belong to, named by `--entity-type` and `--entity-name` or by a flag each."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from millstream.kafka_tools.java.java_errors import illegal_argument
from millstream.kafka_tools.java.java_integers import parse_integer
from millstream.kafka_tools.options.arguments import OptionValues

TOPIC, CLIENT, USER, BROKER, LOGGER, IP, METRICS, GROUP = (
    "topics",
    "clients",
    "users",
    "brokers",
    "broker-loggers",
    "ips",
    "client-metrics",
    "groups",
)
KNOWN = (LOGGER, TOPIC, CLIENT, USER, BROKER, IP, METRICS, GROUP)
FLAGS = {
    "topic": TOPIC,
    "client": CLIENT,
    "user": USER,
    "broker": BROKER,
    "broker-logger": LOGGER,
    "ip": IP,
    "client-metrics": METRICS,
    "group": GROUP,
}
DEFAULTS = {"client-defaults": CLIENT, "user-defaults": USER, "broker-defaults": BROKER, "ip-defaults": IP}
DEFAULT = ""
"""The name of what holds for all of a type."""
WITH_DEFAULTS = {USER, CLIENT, BROKER, IP}


def entity_types(values: OptionValues) -> list[str]:
    """Return the entity types: those of `--entity-type` in order, then those of flags."""
    flags = [type for flag, type in (FLAGS | DEFAULTS).items() if values.has(flag)]
    return [*values.texts("entity-type"), *flags]


def entity_names(values: OptionValues) -> list[str]:
    """Return the entity names, in the order of the types."""
    names = iter(values.texts("entity-name"))
    listed = [
        next(names) if option == "entity-name" else DEFAULT
        for option in values.order
        if option in ("entity-name", "entity-default")
    ]
    flags = [values.text(flag) or DEFAULT for flag in FLAGS if values.has(flag)]
    return [*listed, *flags, *(DEFAULT for flag in DEFAULTS if values.has(flag))]


def check_arguments(values: OptionValues) -> None:
    """Check the arguments in Java's order. End with the usage, or raise IllegalArgumentException."""
    if values.count("alter", "describe") != 1:
        values.usage("Command must include exactly one action: --describe, --alter")
    values.excluded("alter", "describe")
    values.excluded("describe", "alter", "add-config", "delete-config")
    types = entity_types(values)
    if twice := [type for at, type in enumerate(types) if type in types[:at]]:
        raise illegal_argument(f"Duplicate entity type(s) specified: {','.join(twice)}")
    if not values.has("bootstrap-server", "bootstrap-controller"):
        raise illegal_argument("Either --bootstrap-server or --bootstrap-controller must be specified.")
    _check_types(values, types)
    if values.count("bootstrap-server", "bootstrap-controller") == 2:
        raise illegal_argument("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    _check_names(values, types)
    if values.has("describe"):
        _check_describe(values, types)
    else:
        _check_alter(values, types)


def _check_types(values: OptionValues, types: Sequence[str]) -> None:
    for type in types:
        if type not in KNOWN:
            raise illegal_argument(
                f"Invalid entity type {type}, the entity type must be one of {', '.join(KNOWN)} with a "
                "--bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise illegal_argument("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USER, CLIENT}:
        raise illegal_argument(f"Only '{USER}' and '{CLIENT}' entity types may be specified together")
    if values.has("entity-name", "entity-type", "entity-default") and values.has(*FLAGS, *DEFAULTS):
        raise illegal_argument(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )


def _check_names(values: OptionValues, types: Sequence[str]) -> None:
    if not any(entity_names(values)):
        return

    def named(*options: str) -> list[str]:
        return [values.text(option) or "" for option in options if values.has(option)]

    if {BROKER, LOGGER} & set(types):
        for broker in named("entity-name", "broker", "broker-logger"):
            try:
                parse_integer(broker)
            except ValueError:
                raise illegal_argument(
                    f"The entity name for {types[0]} must be a valid integer broker id, but it is: {broker}"
                ) from None
    if IP in types:
        for address in named("entity-name", "ip"):
            if not _is_address(address):
                raise illegal_argument(
                    f"The entity name for {types[0]} must be a valid IP or resolvable host, but it is: "
                    f"{address}"
                )


def _is_address(text: str) -> bool:
    try:
        socket.getaddrinfo(text, None)
    except (OSError, UnicodeError):
        return not text
    return True


def _check_describe(values: OptionValues, types: Sequence[str]) -> None:
    if values.has("entity-default") and not WITH_DEFAULTS & set(types):
        raise illegal_argument(f"--entity-default must not be specified with --describe of {','.join(types)}")
    if LOGGER in types and not any(entity_names(values)):
        raise illegal_argument(f"An entity name must be specified with --describe of {','.join(types)}")


def _check_alter(values: OptionValues, types: Sequence[str]) -> None:
    names = entity_names(values)
    if WITH_DEFAULTS & set(types):
        if not names:
            raise illegal_argument(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers "
                "or ips"
            )
    elif not any(names):
        raise illegal_argument(f"An entity name must be specified with --alter of {','.join(types)}")
    if values.count("add-config", "add-config-file") == 2:
        raise illegal_argument("Only one of --add-config or --add-config-file must be specified")
    if not values.has("add-config", "add-config-file", "delete-config"):
        raise illegal_argument(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with "
            "--alter"
        )

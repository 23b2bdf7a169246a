"""Changes of settings, quotas and credentials: `kafka-configs --alter`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from millstream.kafka_tools.configs.entities import (
    CLIENT,
    DEFAULT,
    IP,
    LOGGER,
    USER,
    entity_names,
    entity_types,
)
from millstream.kafka_tools.configs.quotas import IP_QUOTAS, QUOTAS, alter_quotas, invalid_configuration
from millstream.kafka_tools.configs.resources import TYPES, read_entries
from millstream.kafka_tools.configs.scram import MECHANISMS, alter_credentials
from millstream.kafka_tools.java.java_errors import illegal_argument
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.kafka_tools.running import read_client_properties
from millstream.terminal.session import Session

OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
KEY = re.compile(r"[a-zA-Z0-9._-]*")


async def alter(session: Session, values: OptionValues) -> None:
    """Add and delete settings of an entity."""
    types, names = entity_types(values), entity_names(values)
    added = _added(values)
    deleted = [key.strip() for key in values.texts("delete-config")]
    if types[0] == IP:
        if unknown := [key for key in (*added, *deleted) if key not in IP_QUOTAS]:
            raise illegal_argument(
                f"Only connection quota configs can be added for '{IP}' using --bootstrap-server. Unexpected "
                f"config names: {','.join(unknown)}"
            )
        await alter_quotas(session, types, names, added, deleted)
    elif types[0] in (USER, CLIENT):
        await _alter_client(session, types, names, added, deleted)
    else:
        await _alter_resource(session, types[0], names[0], added, deleted)
    if names[0] == DEFAULT:
        print(f"Completed updating default config for {types[0]} in the cluster.")
    else:
        print(f"Completed updating config for {types[0][:-1]} {names[0]}.")


def _added(values: OptionValues) -> dict[str, str]:
    added = dict(read_client_properties(values.text("add-config-file")))
    if (text := values.text("add-config")) is not None:
        parts = re.split("," + OUTSIDE_BRACKETS, text)
        # As Java's split, which leaves out what is empty at the end.
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        pairs = [re.split(r"\s*=\s*" + OUTSIDE_BRACKETS, part) for part in parts]
        if any(len(pair) != 2 for pair in pairs):
            raise illegal_argument(
                "Invalid entity config: all configs to be added must be in the format "
                '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        added |= {key.strip(): re.sub(r"\[?\]?", "", value).strip() for key, value in pairs}
    for key in added:
        if KEY.fullmatch(key) is None:
            raise illegal_argument(f"Invalid character found for config key: {key}")
    return added


async def _alter_resource(
    session: Session, type: str, name: str, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    if type == LOGGER:
        there = {entry.name for entry in await read_entries(session, type, name, everything=False)}
        if unknown := [key for key in (*deleted, *added) if key not in there]:
            raise invalid_configuration(f"Invalid broker logger(s): {','.join(unknown)}")
    changes: dict[str, str | None] = {**dict.fromkeys(deleted), **added}
    await session.admin.incremental_alter_configs(name, changes, TYPES[type])


async def _alter_client(
    session: Session,
    types: Sequence[str],
    names: Sequence[str],
    added: Mapping[str, str],
    deleted: Sequence[str],
) -> None:
    """Alter quotas of users and clients, or credentials of a user."""
    if types[0] == CLIENT or len(types) == 2:
        _check_only(CLIENT, "quota", QUOTAS, added, deleted)
    else:
        _check_only(USER, "quota and SCRAM credential", {*QUOTAS, *MECHANISMS}, added, deleted)
        _check_credentials(names, added, deleted)
    if any(key in QUOTAS for key in (*added, *deleted)):
        await alter_quotas(session, types, names, added, deleted)
    else:
        await alter_credentials(session, names[0], added, deleted)


def _check_only(
    type: str, what: str, supported: Iterable[str], added: Iterable[str], deleted: Iterable[str]
) -> None:
    for verb, keys in (("added", added), ("deleted", deleted)):
        if unknown := [key for key in keys if key not in supported]:
            raise illegal_argument(
                f"Only {what} configs can be {verb} for '{type}' using --bootstrap-server. Unexpected config "
                f"names: {','.join(unknown)}"
            )


def _check_credentials(names: Sequence[str], added: Iterable[str], deleted: Iterable[str]) -> None:
    keys = {*added, *deleted}
    if not keys & MECHANISMS.keys():
        return
    if DEFAULT in names:
        raise illegal_argument(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using "
            "--bootstrap-server."
        )
    if keys & set(QUOTAS):
        raise illegal_argument(
            f"Cannot alter both quota and SCRAM credential configs simultaneously for '{USER}' using "
            "--bootstrap-server."
        )

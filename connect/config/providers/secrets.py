"""Resolved values, turned back into variables before anything is stored or shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connect.errors import InvalidConfig
from kafka_client.errors import ConfigError


def restored(
    config: Mapping[str, Any], resolved: Mapping[str, Any], planned: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """Return task configs in which the values of a connector's variables are variables again.

    A plugin plans its tasks from `resolved`. `config` is the connector's own, with its variables.
    """
    changed = {key for key in config if resolved[key] != config[key]}
    return [
        {
            key: config[key] if key in changed and value == resolved[key] else value
            for key, value in each.items()
        }
        for each in planned
    ]


def hidden(config: Mapping[str, Any], resolved: Mapping[str, Any], error: ConfigError) -> ConfigError:
    """Return an error about a resolved config, with variables in place of their values.

    `config` is the same config with its variables.
    """
    if isinstance(error, InvalidConfig):
        return InvalidConfig([hidden(config, resolved, each) for each in error.errors])
    restore = _restorer(config, resolved)
    if restore is None:
        return error
    return type(error)(error.key, restore(str(error.value)), restore(error.allowed))


def hidden_report(
    config: Mapping[str, Any], resolved: Mapping[str, Any], report: dict[str, Any]
) -> dict[str, Any]:
    """Return a report about a resolved config (`connect.config.validate`), with variables for their values.

    `config` is the same config with its variables.
    """
    restore = _restorer(config, resolved)
    if restore is None:
        return report
    for entry in report["configs"]:
        value = entry["value"]
        if value["value"] is not None and resolved.get(value["name"]) != config.get(value["name"]):
            value["value"] = str(config[value["name"]])
        value["errors"] = [restore(text) for text in value["errors"]]
    return report


def _restorer(config: Mapping[str, Any], resolved: Mapping[str, Any]) -> Callable[[str], str] | None:
    """Return a function that puts variables back into a text; None if the config has none."""
    secrets = {str(resolved[key]): str(config[key]) for key in config if resolved[key] != config[key]}
    longest_first = sorted(filter(None, secrets), key=len, reverse=True)

    def restore(text: str) -> str:
        for secret in longest_first:
            text = text.replace(secret, secrets[secret])
        return text

    return restore if secrets else None

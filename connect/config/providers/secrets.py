"""Resolved values, turned back into variables before anything is stored or shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    secrets = {str(resolved[key]): str(config[key]) for key in config if resolved[key] != config[key]}
    value, allowed = str(error.value), error.allowed
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        value = value.replace(secret, secrets[secret])
        allowed = allowed.replace(secret, secrets[secret])
    return ConfigError(error.key, value, allowed) if secrets else error

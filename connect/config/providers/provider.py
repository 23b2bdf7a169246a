"""The interface of config providers (KIP-297)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from connect.config.providers.data import ConfigData


class ConfigProvider:
    """A source of values for variables in configs: `${provider:path:key}`, or `${provider:key}`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Create a provider. `config` has its settings, without `config.providers.<name>.param.`.

        Raises ConfigError for an invalid setting.
        """

    def get(self, path: str, keys: Set[str]) -> Mapping[str, str] | ConfigData:
        """Return the values of those of `keys` that the provider has at `path`, which may be empty.

        Values that expire come as ConfigData with a `ttl`. Raises ConfigError, whose
        message holds no value, if `path` cannot be read.
        """
        raise NotImplementedError

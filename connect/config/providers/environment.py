"""EnvVarConfigProvider: values from environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Set
from typing import Any

from connect.config.providers.provider import ConfigProvider
from kafka_client.errors import ConfigError

_PATTERN = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """`${env:NAME}`: the value of an environment variable whose whole name `allowlist.pattern` matches."""

    def __init__(self, config: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> None:
        super().__init__(config)
        self._variables = os.environ if variables is None else variables
        pattern = str(config.get(_PATTERN, ".*"))
        try:
            self._pattern = re.compile(pattern)
        except re.error as e:
            raise ConfigError(_PATTERN, pattern, f"is no regular expression: {e}") from e

    def get(self, path: str, keys: Set[str]) -> Mapping[str, str]:
        """Return the values of the variables that are set and allowed. Raises ConfigError for a path."""
        if path:
            raise ConfigError("path", path, "environment variables have no path: write ${env:NAME}")
        return {
            key: self._variables[key]
            for key in keys
            if key in self._variables and self._pattern.fullmatch(key)
        }

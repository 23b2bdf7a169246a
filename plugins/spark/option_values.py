"""The values of options, read by names in any case; errors name the option, its value and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafka_client.errors import ConfigError

_MILLISECONDS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Units of Spark's times, as in `15m`."""
_TIME = re.compile(r"(\d+)\s*([a-z]*)")


class OptionValues:
    """Options by name; Spark passes their names in lower case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.by_name = {key.lower(): value for key, value in options.items()}

    def get(self, key: str) -> str | None:
        """Return the value, or None if the option is not set."""
        return self.by_name.get(key.lower())

    def required(self, key: str) -> str:
        """Return the value; raises ConfigError if it is missing or empty."""
        value = self.get(key)
        if not value:
            raise ConfigError(key, "", "is required")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        """Return true or false; raises ConfigError for anything else."""
        text = (self.get(key) or str(default)).strip().lower()
        if text not in ("true", "false"):
            raise ConfigError(key, text, "true or false")
        return text == "true"

    def positive(self, key: str, least: int = 1) -> int | None:
        """Return a whole number of at least `least`, or None if the option is not set."""
        text = self.get(key)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            raise ConfigError(key, text, "a whole number is wanted") from None
        if number < least:
            raise ConfigError(key, text, f"a number from {least} on is wanted")
        return number

    def milliseconds(self, key: str, default: int) -> int:
        """Return a time as Spark writes it: `15m`, `30s`, `500ms`; a plain number is in ms."""
        text = self.get(key)
        if text is None:
            return default
        match = _TIME.fullmatch(text.strip().lower())
        unit = match and (match[2] or "ms")
        if match is None or unit not in _MILLISECONDS:
            raise ConfigError(key, text, "a time such as 500ms, 30s, 15m, 1h or 1d is wanted")
        return int(int(match[1]) * _MILLISECONDS[unit])

"""Headers of every answer, from `response.http.headers.config` (KIP-577)."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from email.utils import formatdate

from starlette.responses import Response

from connect.errors import ConfigError

KEY = "response.http.headers.config"
_ACTIONS = ("set", "add", "setDate", "addDate")


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """A header to be set or added. The value of a date is its distance from now in milliseconds."""

    action: str
    name: str
    value: str

    def apply(self, response: Response) -> None:
        """Change the headers of a response."""
        value = self.value
        if self.action.endswith("Date"):
            value = formatdate(time.time() + int(value) / 1000, usegmt=True)
        if self.action.startswith("set"):
            response.headers[self.name] = value
        else:
            response.headers.append(self.name, value)


def parse_rules(text: str) -> list[HeaderRule]:
    """Return the rules of `action name:value, ...`; a rule with a comma is in quotes. Raises ConfigError."""
    if not text.strip():
        return []
    return [_rule(each.strip()) for each in next(csv.reader([text], skipinitialspace=True))]


def _rule(text: str) -> HeaderRule:
    action, separator, rest = text.partition(" ")
    if not separator:
        raise ConfigError(KEY, text, "Expected: '[action] [header name]:[header value]'")
    if action not in _ACTIONS:
        raise ConfigError(KEY, text, f"has the action {action!r}; expected one of {', '.join(_ACTIONS)}")
    name, separator, value = rest.strip().partition(":")
    if not separator or not name.strip():
        raise ConfigError(KEY, text, "Expected: '[header name]:[header value]' after the action")
    if any(character.isspace() for character in name.strip()):
        raise ConfigError(KEY, text, f"has a blank in the header name {name.strip()!r}")
    if action.endswith("Date") and not value.strip().lstrip("-").isdecimal():
        raise ConfigError(KEY, text, "needs a number of milliseconds as the date's distance from now")
    return HeaderRule(action, name.strip(), value.strip())

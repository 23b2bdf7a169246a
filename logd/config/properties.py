"""Kafka's ``server.properties`` format (Java's), and ``--override key=value`` on top.

    # comment, ! comment
    key=value        key: value        key value
    key = a long \\
          value

Left to others: what the keys mean (``logd.config.load``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from logd.errors import ConfigError

_KEY_END = re.compile(r"(?<!\\)(?:\\\\)*([\s=:])")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file; the last of two equal keys wins, as in Java."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        found = _KEY_END.search(line)
        if found is None:
            properties[_unescape(line)] = ""
            continue
        end = found.start(1)
        rest = line[end:].lstrip()
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip()
        properties[_unescape(line[:end])] = _unescape(rest).rstrip()
    return properties


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """``key=value`` arguments of the command line."""
    properties: dict[str, str] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError("--override", override, "key=value")
        properties[key.strip()] = value.strip()
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks, those ending in an odd number of backslashes joined to the next."""
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        line = pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
            continue
        pending = ""
        yield line
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        escaped = found.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _CONTROLS.get(escaped, escaped)

    return _ESCAPE.sub(replace, text) if "\\" in text else text

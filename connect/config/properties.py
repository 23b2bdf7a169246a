"""Config files: Java properties (what Kafka's own files are) and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from logd.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*[=:\s]")


def parse_properties(text: str) -> dict[str, str]:
    """Java's properties: `key=value`, `#` and `!` comments, a trailing backslash continues the line."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        logical = line.lstrip()
        if not logical or logical[0] in "#!":
            continue
        while _continues(logical):
            logical = logical[:-1] + next(lines, "").lstrip()
        key, value = _split(logical)
        found[_unescape(key)] = _unescape(value).rstrip()
    return found


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    match = _SEPARATOR.search(line)
    if match is None:
        return line, ""
    rest = line[match.end() :].lstrip()
    if line[match.end() - 1].isspace() and rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip()
    return line[: match.end() - 1], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replaced, text)


def read_config_file(path: Path) -> dict[str, Any]:
    """A worker's or connector's config.

    JSON may be the flat map or `{"name": ..., "config": {...}}`, as Kafka's standalone worker takes both.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as e:
        raise ConfigError("file", path, f"cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ConfigError("file", path, f"must be in UTF-8: {e}") from e
    if path.suffix != ".json":
        return dict(parse_properties(text))
    try:
        document = json.loads(text)
    except ValueError as e:
        raise ConfigError("file", path, f"is not JSON: {e}") from e
    if isinstance(document, dict) and isinstance(document.get("config"), dict):
        document = {"name": document.get("name"), **document["config"]}
    if not isinstance(document, dict):
        raise ConfigError("file", path, "must hold a JSON object")
    return {str(key): value for key, value in document.items() if value is not None}

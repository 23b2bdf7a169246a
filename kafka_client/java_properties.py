"""Java's properties, the format of Kafka's config files, and ``--override key=value`` on top.

    # comment, ! comment
    key=value        key: value        key value
    key = a long \\
          value

Trailing blanks of a value are dropped, as Kafka does when it parses the value, unless `keep_blanks` is set.
The meaning of keys is left to others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kafka_client.errors import ConfigError

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY_END = re.compile(rf"(?<!\\)(?:\\\\)*([{_BLANKS}=:])")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def parse_properties(text: str, *, keep_blanks: bool = False) -> dict[str, str]:
    """Return the keys and values of a properties file; of two equal keys the last wins, as in Java.

    Blanks at the end of a value are cut off, unless `keep_blanks` is true.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end = _KEY_END.search(line)
        if key_end is None:
            properties[_unescape(line)] = ""
            continue
        end = key_end.start(1)
        rest = line[end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        value = _unescape(rest)
        properties[_unescape(line[:end])] = value if keep_blanks else value.rstrip(_BLANKS)
    return properties


def format_properties(properties: Mapping[str, str]) -> str:
    """Return the text that `parse_properties` reads as the same, except blanks at the end of a value."""
    return "".join(f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in properties.items())


def _escape_key(key: str) -> str:
    return re.sub(r"([ =:#!])", r"\\\1", _escape(key))


def _escape_value(value: str) -> str:
    # An unescaped blank before a value would be read as part of the separator.
    shown = _escape(value)
    return f"\\{shown}" if shown[:1] == " " else shown


def _escape(text: str) -> str:
    text = text.replace("\\", "\\\\")
    for letter, character in _CONTROLS.items():
        text = text.replace(character, f"\\{letter}")
    return text


def read_properties(path: Path, name: str = "file") -> dict[str, str]:
    """Return a file's keys and values. Raises ConfigError for the setting `name` if it cannot be read."""
    return parse_properties(read_text(path, name))


def read_text(path: Path, name: str = "file") -> str:
    """Return a config file's text without a byte order mark.

    Raises ConfigError for the setting `name` if the file cannot be read or is not UTF-8.
    """
    try:
        return path.read_text("utf-8-sig")
    except OSError as e:
        raise ConfigError(name, path, f"cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ConfigError(name, path, f"must be in UTF-8: {e}") from e


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """Parse ``key=value`` arguments of the command line. Raises ConfigError."""
    properties: dict[str, str] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError("--override", override, "key=value")
        properties[key.strip()] = value.strip()
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blank ones; an odd number of backslashes joins a line to the next."""
    pending = ""
    for raw in _LINE_END.split(text):
        line = raw.lstrip(_BLANKS)
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
    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _CONTROLS.get(escaped, escaped)

    if "\\" not in text:
        return text
    # Java writes a character beyond 16 bits as two escapes, the halves of a UTF-16 pair.
    return _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

"""The one-line JAAS configurations of `sasl.jaas.config`, as Kafka's `JaasConfig` reads them (KIP-85).

    org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";

The text contains passwords: errors of this module only quote the names of the login module and of options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    | "(?P<double>(?:\\.|[^"\\\n])*)"
    | '(?P<single>(?:\\.|[^'\\\n])*)'
    | (?P<word>[^\s"'=;]+)
    | (?P<mark>[=;])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


class JaasError(ValueError):
    """An unreadable configuration; the text says why, and quotes no value."""


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """A login module and its options, whose values `repr` leaves out."""

    module: str
    """The class's name without its package: `PlainLoginModule`."""
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> JaasEntry:
    """Return the only entry of `text`; raises JaasError if it cannot be read or has several."""
    tokens = list(_tokens(text))
    if not tokens or tokens[-1] != (";", True):
        raise JaasError("must end with a semicolon")
    entry, rest = tokens[: tokens.index((";", True))], tokens[tokens.index((";", True)) + 1 :]
    if rest:
        raise JaasError("must hold one login module, not several")
    if len(entry) < 2 or entry[1][0].lower() not in _FLAGS:
        raise JaasError('must begin with a login module\'s class and "required"')
    options: dict[str, str] = {}
    settings = entry[2:]
    while settings:
        (name, _), equals, value = settings[0], settings[1:2], settings[2:3]
        if equals != [("=", True)] or not value or value[0] == ("=", True):
            # The name may be part of a password that was not quoted.
            raise JaasError('must have its options as name="value"')
        options[name] = value[0][0]
        settings = settings[3:]
    return JaasEntry(entry[0][0].rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the text of each token, and True if it is a mark."""
    pos = 0
    while pos < len(text):
        token = _TOKEN.match(text, pos)
        if token is None:
            raise JaasError("has a quote that does not end")
        pos = token.end()
        kind, value = token.lastgroup, token.group(token.lastgroup or 0)
        if kind in ("double", "single"):
            yield _ESCAPE.sub(_unescaped, value), False
        elif kind != "skip":
            yield value, kind == "mark"


def _unescaped(match: re.Match[str]) -> str:
    escaped = match.group(1)
    return chr(int(escaped, 8)) if escaped.isdecimal() else _CONTROLS.get(escaped, escaped)

r"""Names of principals from certificates: `ssl.principal.mapping.rules`, as Kafka's SslPrincipalMapper.

KIP-371:

    DEFAULT                            the whole distinguished name
    RULE:PATTERN/REPLACEMENT/          if the name matches the pattern in whole: the replacement
    RULE:PATTERN/REPLACEMENT/L (or U)  the same in lower (or upper) case

Rules are separated by commas or newlines, and the first that applies counts. In a replacement `$1` is the
pattern's first group. `\/` is a slash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_client.errors import ConfigError

KEY: Final = "ssl.principal.mapping.rules"
_PART = r"(?:\\.|[^\\/])*"
_RULE = rf"(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)"
# As in Kafka, a comma ends a rule only after its last slash; text that is no rule goes up to the next comma.
_SPLITTER = re.compile(rf"\s*(?P<rule>(?:{_RULE}).*?|.*?)\s*[,\n]\s*")
_PARSER = re.compile(_RULE)
_JAVA_GROUP_NAME = re.compile(r"\(\?<(?=[A-Za-z])")
_REFERENCE = re.compile(r"\\(?P<literal>.)|\$(?P<number>\d+)|(?P<bad>[$\\])", re.DOTALL)

Replace = Callable[[re.Match[str]], str]


class NoRuleApplies(ValueError):
    """No rule applies to a certificate's name."""


class _Rule(NamedTuple):
    """A rule; `pattern` is None for DEFAULT."""

    pattern: re.Pattern[str] | None
    replace: Replace
    case: str

    def name_of(self, subject: str) -> str | None:
        """Return the principal's name, or None if the rule does not apply."""
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self.replace, subject)
        return {"L": name.lower, "U": name.upper}.get(self.case, name.__str__)()


class PrincipalRules:
    """The rules of one listener. Raises ConfigError, which names `key`, for a rule that cannot be used."""

    def __init__(self, text: str = "DEFAULT", key: str = KEY) -> None:
        rules = [each["rule"] for each in _SPLITTER.finditer(text.strip() + ",")]
        self._rules = [_parsed(rule, key) for rule in rules if rule]

    def principal_of(self, subject: str) -> str:
        """Return the principal of a certificate's subject. Raises NoRuleApplies."""
        for rule in self._rules:
            if (name := rule.name_of(subject)) is not None:
                return f"User:{name}"
        raise NoRuleApplies(f"no rule of {KEY} applies to the certificate's name {subject!r}")


def _parsed(rule: str, key: str) -> _Rule:
    match = _PARSER.fullmatch(rule)
    if match is None:
        raise ConfigError(key, rule, "DEFAULT, or RULE:PATTERN/REPLACEMENT/ with L or U after it")
    if match["default"] is not None:
        return _Rule(None, _unchanged, "")
    try:
        pattern = re.compile(_JAVA_GROUP_NAME.sub("(?P<", match["pattern"]))
    except re.error as error:
        raise ConfigError(key, rule, f"a regular expression that can be read: {error}") from None
    return _Rule(pattern, _replacement(match["replacement"], pattern.groups, key, rule), match["case"])


def _unchanged(match: re.Match[str]) -> str:
    return match.group()


def _replacement(text: str, groups: int, key: str, rule: str) -> Replace:
    """Return the function of a replacement in Java's syntax.

    Raises ConfigError for a group that the pattern does not have.
    """
    parts: list[str | int] = []
    pos = 0
    for each in _REFERENCE.finditer(text):
        parts.append(text[pos : each.start()])
        pos = each.end()
        if each["literal"] is not None:
            parts.append(each["literal"])
            continue
        number = _group_number(each["number"] or "", groups)
        if number is None:
            raise ConfigError(key, rule, f"a replacement with $0 to ${groups}, the groups of its pattern")
        parts.append(number[0])
        parts.append(number[1])
    parts.append(text[pos:])

    def replace(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)

    return replace


def _group_number(digits: str, groups: int) -> tuple[int, str] | None:
    """Return the group that `$DIGITS` means and the digits after it; None if there is no such group.

    As in Java, digits belong to the number as long as there is such a group.
    """
    number = int(digits[0]) if digits else groups + 1
    if number > groups:
        return None
    used = 1
    while used < len(digits) and number * 10 + int(digits[used]) <= groups:
        number = number * 10 + int(digits[used])
        used += 1
    return number, digits[used:]

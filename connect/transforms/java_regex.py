"""Regular expressions of java.util.regex, as patterns of Python's `re`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9a-fA-F",
    "Blank": r" \t",
    "Space": r"\s",
    "ASCII": r"\x00-\x7f",
}
_TOKEN = re.compile(r"\\Q(.*?)(?:\\E|$)|\\([pP])\{(\w+)\}|\\(.)|\(\?<(?![=!])(\w+)>|(.)", re.DOTALL)
_REPLACEMENT = re.compile(r"\\(.)|\$\{(\w+)\}|\$(\d+)|([\\$])|([^\\$]+)", re.DOTALL)
Replacement = Callable[[re.Match[str]], str]


def compile_java(text: str) -> re.Pattern[str]:
    r"""Return the pattern of a Java expression. Raises ValueError if it is invalid, or not supported.

    Classes as \d are those of ASCII, as in Java. Named groups, \Q...\E, \z, \h and POSIX classes as \p{Alpha}
    are translated. Other \p{...}, and intersections of classes (&&), are not supported.
    """
    parts: list[str] = []
    in_class = 0
    for quoted, p, name, escape, group, plain in _TOKEN.findall(text):
        if name:
            parts.append(_posix_class(p, name, bool(in_class)))
        elif escape:
            parts.append(_escape(escape, bool(in_class)))
        elif group:
            parts.append(f"(?P<{group}>")
        elif plain:
            in_class = _depth(parts, plain, in_class)
            parts.append(plain)
        else:
            parts.append(re.escape(quoted))
    try:
        return re.compile("".join(parts), re.ASCII)
    except re.error as e:
        raise ValueError(f"is no regular expression: {e}") from e


def _depth(parts: Sequence[str], char: str, in_class: int) -> int:
    """Return how many brackets are open behind a character. Raises ValueError for nested classes."""
    if char == "[" and in_class:
        raise ValueError("classes within classes are not supported")
    if char == "&" and in_class and parts[-1] == "&":
        raise ValueError("intersections of classes (&&) are not supported")
    if char == "[":
        return 1
    return 0 if char == "]" else in_class


def _posix_class(p: str, name: str, in_class: bool) -> str:
    if name not in _CLASSES or (in_class and p == "P"):
        raise ValueError(f"\\{p}{{{name}}} is not supported; names are {', '.join(_CLASSES)}")
    if in_class:
        return _CLASSES[name]
    return f"[{'^' if p == 'P' else ''}{_CLASSES[name]}]"


def _escape(char: str, in_class: bool) -> str:
    if char == "z":
        return r"\Z"
    if char == "h":
        return r" \t\xa0" if in_class else r"[ \t\xa0]"
    if char in "GRXKkZ":
        raise ValueError(f"\\{char} is not supported")
    return f"\\{char}"


def compile_replacement(text: str, pattern: re.Pattern[str]) -> Replacement:
    r"""Return the function of a Java replacement: $1 and ${name} are groups, \x is x itself.

    Raises ValueError for a group that the pattern does not have. As in Java, $12 is group 1 and a 2 if there
    is no group 12.
    """
    parts: list[str | int] = []
    for escaped, name, digits, stray, plain in _REPLACEMENT.findall(text):
        if stray:
            raise ValueError(
                f"{stray!r} must be followed by a group or a character; write \\{stray} for itself"
            )
        if name:
            if name not in pattern.groupindex:
                raise ValueError(f"there is no group {name!r} in the regular expression")
            parts.append(pattern.groupindex[name])
        elif digits:
            parts.extend(_numbered(digits, pattern.groups))
        else:
            parts.append(escaped or plain)
    return lambda match: "".join(p if isinstance(p, str) else match[p] or "" for p in parts)


def _numbered(digits: str, groups: int) -> tuple[int, str]:
    """Return the group that the digits name, and the rest of the digits."""
    length = next((n for n in range(len(digits), 0, -1) if int(digits[:n]) <= groups), 0)
    if not length:
        raise ValueError(f"there is no group {digits[0]} in the regular expression")
    return int(digits[:length]), digits[length:]

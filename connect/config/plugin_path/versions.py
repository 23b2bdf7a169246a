"""Versions of plugins, and the ranges of them in `connector.plugin.version` (KIP-891): Maven's syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\d+|[a-z]+")
_QUALIFIERS = {
    "alpha": -5, "a": -5, "beta": -4, "b": -4, "milestone": -3, "m": -3, "rc": -2, "cr": -2, "c": -2,
    "dev": -6, "snapshot": -1, "ga": 0, "final": 0, "release": 0, "sp": 1, "post": 1,
}  # fmt: skip
_RANGE = re.compile(r"\s*([\[(])\s*([^,\[\]()]*?)\s*(?:(,)\s*([^,\[\]()]*?)\s*)?([\])])\s*(?:,|$)")
Key = tuple[tuple[int, int, str], ...]
_RELEASE = (0, 0, "")


def version_key(version: str) -> Key:
    """Return a key that orders versions: 1.0-rc1 < 1.0 = 1.0.0 < 1.0.1 < 1.10; unknown words come first."""
    key = []
    for token in _TOKEN.findall(version.lower()):
        if token.isdigit():
            # Zeros at the end are as good as none.
            key.append((1, int(token), "") if int(token) else _RELEASE)
        else:
            order = _QUALIFIERS.get(token)
            key.append((-1, -7, token) if order is None else _word(order))
    while key and key[-1] == _RELEASE:
        key.pop()
    return (*key, _RELEASE)


def _word(order: int) -> tuple[int, int, str]:
    return (-1 if order < 0 else 0, order, "")


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A set of versions: intervals, each with a lower and an upper bound, "" for none."""

    text: str
    intervals: tuple[tuple[str, bool, str, bool], ...]
    """(lower, is inclusive, upper, is inclusive)."""

    @classmethod
    def parse(cls, text: str | None) -> VersionRange | None:
        """Return the range; None for no text and `latest`, that is any version. Raises ValueError.

        A plain version is this version alone, `[1.0,2.0)` an interval, and `[1,2),[3,)` are two.
        """
        text = (text or "").strip()
        if not text or text == "latest":
            return None
        if not text.startswith(("[", "(")):
            if not _TOKEN.search(text.lower()) or re.search(r"[\[\](),\s]", text):
                raise ValueError("must be a version, `latest`, or a range such as [1.0,2.0)")
            return cls(text, ((text, True, text, True),))
        intervals, at = [], 0
        while at < len(text):
            match = _RANGE.match(text, at)
            if match is None:
                raise ValueError("must be a version, `latest`, or a range such as [1.0,2.0)")
            opening, lower, comma, upper, closing = match.groups()
            if not comma and (opening != "[" or closing != "]" or not lower):
                raise ValueError("a range of one version is written [1.0]")
            intervals.append((lower, opening == "[", upper if comma else lower, closing == "]"))
            at = match.end()
        return cls(text, tuple(intervals))

    def __contains__(self, version: str) -> bool:
        key = version_key(version)
        for lower, with_lower, upper, with_upper in self.intervals:
            low, high = version_key(lower), version_key(upper)
            if lower and not (key > low or (with_lower and key == low)):
                continue
            if upper and not (key < high or (with_upper and key == high)):
                continue
            return True
        return False

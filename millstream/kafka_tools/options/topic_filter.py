"""Topics by a regular expression, as Kafka's tools take them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from millstream.kafka_tools.java.java_errors import JavaError

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that the tools know as internal by their names."""


class TopicFilter:
    """A regular expression in which a comma means `|`. Raises JavaError if it is invalid."""

    def __init__(self, text: str) -> None:
        self.regex = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._pattern = re.compile(self.regex)
        except re.error:
            raise JavaError("java.lang.RuntimeException", f"{self.regex} is an invalid regex.") from None

    def admits(self, topic: str, *, exclude_internal: bool) -> bool:
        """Return True if the whole name matches."""
        return self._pattern.fullmatch(topic) is not None and not (exclude_internal and topic in INTERNAL)


def chosen(names: Iterable[str], expression: str | None, *, exclude_internal: bool) -> list[str]:
    """Return the names that match, sorted."""
    if expression is None:
        return sorted(name for name in names if not (exclude_internal and name in INTERNAL))
    admitted = TopicFilter(expression)
    return sorted(name for name in names if admitted.admits(name, exclude_internal=exclude_internal))

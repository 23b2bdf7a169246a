"""Kafka's predicates: TopicNameMatches, HasHeaderKey and RecordIsTombstone."""

from __future__ import annotations

from collections.abc import Mapping

from connect.api.records import SinkRecord, SourceRecord
from connect.api.transform import Predicate
from connect.config import Config, setting
from connect.transforms.fields import non_empty
from connect.transforms.java_regex import compile_java


def _check_pattern(text: str) -> None:
    non_empty(text)
    compile_java(text)


class TopicNameMatchesConfig(Config):
    """True for records whose whole topic matches."""

    pattern: str = setting("A regular expression of Java's.", check=_check_pattern)


class TopicNameMatches(Predicate):
    """The predicate TopicNameMatches."""

    CONFIG = TopicNameMatchesConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Compile the expression."""
        self._matches = compile_java(TopicNameMatchesConfig.parse(config).pattern).fullmatch

    def test(self, record: SourceRecord | SinkRecord) -> bool:
        """Return True if the whole topic matches."""
        return self._matches(record.topic) is not None


class HasHeaderKeyConfig(Config):
    """True for records with a header of a name."""

    name: str = setting("The header's name.", check=non_empty)


class HasHeaderKey(Predicate):
    """The predicate HasHeaderKey."""

    CONFIG = HasHeaderKeyConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Take the name."""
        self._name = HasHeaderKeyConfig.parse(config).name

    def test(self, record: SourceRecord | SinkRecord) -> bool:
        """Return True if a header has the name."""
        return any(header[0] == self._name for header in record.headers)


class RecordIsTombstoneConfig(Config):
    """True for records whose value is null."""


class RecordIsTombstone(Predicate):
    """The predicate RecordIsTombstone."""

    CONFIG = RecordIsTombstoneConfig

    def test(self, record: SourceRecord | SinkRecord) -> bool:
        """Return True if the value is null."""
        return record.value is None

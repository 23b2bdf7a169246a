"""RegexRouter and TimestampRouter: change a record's topic."""

from __future__ import annotations

from collections.abc import Callable

from connect.api.transform import R
from connect.config import Config, setting
from connect.errors import ConfigError, DataError
from connect.transforms.date_format import DateFormat
from connect.transforms.java_regex import compile_java, compile_replacement
from connect.transforms.parts import Configured

_CACHED_TOPICS = 1000


def check_regex(text: str) -> None:
    """Raise ValueError unless the text is a regular expression of Java's."""
    compile_java(text)


class RegexRouterConfig(Config):
    """Changes topics that a regular expression matches as a whole."""

    regex: str = setting("The regular expression, of Java's.", importance="HIGH", check=check_regex)
    replacement: str = setting("The new topic; $1 and ${name} are groups.", importance="HIGH")

    def check(self) -> None:
        """Raise ConfigError for a group that the expression does not have."""
        try:
            compile_replacement(self.replacement, compile_java(self.regex))
        except ValueError as e:
            raise ConfigError("replacement", self.replacement, str(e)) from e


class RegexRouter(Configured[RegexRouterConfig]):
    """The transform RegexRouter."""

    CONFIG = RegexRouterConfig

    def prepare(self) -> None:
        """Compile the expression."""
        self._regex = compile_java(self.config.regex)
        self._replacement = compile_replacement(self.config.replacement, self._regex)
        self._topics: dict[str, str] = {}

    def change(self, record: R) -> R:
        """Change the topic if the expression matches, and return the record."""
        topic = record.topic
        record.topic = self._topics.get(topic) or self._route(topic)
        return record

    def change_many(self, records: list[R]) -> list[R]:
        """Change the topics of the records, and return them."""
        topics = self._topics
        for record in records:
            topic = record.topic
            record.topic = topics.get(topic) or self._route(topic)
        return records

    def _route(self, topic: str) -> str:
        """Return the new topic, and put it into the cache.

        As in Java, the first match is replaced, which may be shorter than the whole topic.
        """
        matches = self._regex.fullmatch(topic) is not None
        routed = self._regex.sub(self._replacement, topic, count=1) if matches else topic
        if len(self._topics) >= _CACHED_TOPICS:
            self._topics.clear()
        self._topics[topic] = routed
        return routed


def _check_pattern(text: str) -> None:
    DateFormat(text)


class TimestampRouterConfig(Config):
    """Changes topics by the record's timestamp."""

    topic_format: str = setting(
        "The new topic, with ${topic} and ${timestamp}.", default="${topic}-${timestamp}", importance="HIGH"
    )
    timestamp_format: str = setting(
        "The pattern of ${timestamp}, of Java's SimpleDateFormat, in UTC.",
        default="yyyyMMdd",
        importance="HIGH",
        check=_check_pattern,
    )


class TimestampRouter(Configured[TimestampRouterConfig]):
    """The transform TimestampRouter."""

    CONFIG = TimestampRouterConfig

    def prepare(self) -> None:
        """Compile the pattern."""
        self._text: Callable[[int], str] = DateFormat(self.config.timestamp_format).format

    def change(self, record: R) -> R:
        """Change the topic, and return the record. Raises DataError if it has no timestamp."""
        timestamp = record.timestamp
        if timestamp is None or timestamp < 0:
            raise DataError("the record has no timestamp")
        try:
            text = self._text(timestamp)
        except ValueError as e:
            raise DataError(str(e)) from e
        topic = self.config.topic_format.replace("${topic}", record.topic)
        record.topic = topic.replace("${timestamp}", text)
        return record

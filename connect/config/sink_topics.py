"""The check of a sink's topics, in the words of Kafka's SinkConnectorConfig."""

from __future__ import annotations

import re
from collections.abc import Sequence

from connect.errors import StatedError
from kafka_client.errors import ConfigError

_TOPICS, _REGEX = "topics", "topics.regex"


def topics_errors(topics: Sequence[str], regex: str | None, dead: str | None) -> list[ConfigError]:
    """Return an error for each key among `topics` and `topics.regex` that is wrong.

    Exactly one of them is set, and does not include `dead`, the topic of the dead letter queue.
    """
    named = ",".join(topics)
    errors: list[ConfigError] = []
    if bool(topics) == bool(regex):
        text = f"Must configure one of {_TOPICS} or {_REGEX}"
        if topics:
            text = f"{_TOPICS} and {_REGEX} are mutually exclusive options, but both are set."
        errors += [StatedError(_TOPICS, named, text), StatedError(_REGEX, regex or "", text)]
    if dead and dead in topics:
        text = (
            f"The DLQ topic '{dead}' may not be included in the list of topics "
            f"('{_TOPICS}=[{', '.join(topics)}]') consumed by the connector"
        )
        errors.append(StatedError(_TOPICS, named, text))
    if regex:
        errors += _regex_errors(regex, dead)
    return errors


def _regex_errors(regex: str, dead: str | None) -> list[ConfigError]:
    try:
        pattern = re.compile(regex)
    except re.error as e:
        return [ConfigError(_REGEX, regex, f"is no regular expression: {e}")]
    if not dead or not pattern.fullmatch(dead):
        return []
    text = (
        f"The DLQ topic '{dead}' may not be included in the regex matching the topics "
        f"('{_REGEX}={regex}') consumed by the connector"
    )
    return [StatedError(_REGEX, regex, text)]

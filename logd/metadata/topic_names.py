"""The rules for the names of topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError

NAME_LENGTH_MAX: Final = 249
CLUSTER_METADATA: Final = "__cluster_metadata"
"""The name of Kafka's metadata log. No topic may be created by that name."""
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def check_name(name: str) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) unless ``name`` can name a topic and its directories."""
    if not name:
        reason = "a topic needs a name"
    elif name in (".", ".."):
        reason = f"a topic cannot be called {name!r}"
    elif len(name) > NAME_LENGTH_MAX:
        reason = (
            f"topic name of {len(name)} characters, at most {NAME_LENGTH_MAX} are allowed: {name[:40]}..."
        )
    elif _NAME.fullmatch(name) is None:
        reason = f"topic name {name!r}: only ASCII letters and digits, '.', '_' and '-' are allowed"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def check_collision(name: str, others: Iterable[str]) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) if a topic's name differs only in '.' and '_'.

    Metric names cannot tell the two characters apart.
    """
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    for other in others:
        if other != name and other.replace(".", "_") == folded:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic {name} collides with existing topic {other}: '.' and '_' count as the same",
            )

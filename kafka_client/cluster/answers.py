"""Error texts for brokers' refusals, which can be read without context."""

from __future__ import annotations

import re

from kafka_client.errors import KafkaError, error_for


def about(subject: str, name: str, message: str | None) -> str:
    """Return a broker's ``message`` after its ``subject``, unless the message contains the subject's
    ``name``.

    Some brokers' messages do, some do not, and some brokers send none.
    """
    if not message:
        return subject
    return (
        message if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", message) else f"{subject}: {message}"
    )


def refusal(code: int, subject: str, name: str, message: str | None) -> KafkaError:
    """Return the error for a broker's refusal; its text includes the subject as in `about`."""
    error = error_for(code, about(subject, name, message))
    error.broker_message = message
    return error

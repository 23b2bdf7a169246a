"""The texts of brokers' refusals, for those who read of them on their own."""

from __future__ import annotations

import re

from kafka_client.errors import KafkaError, error_for


def about(subject: str, name: str, message: str | None) -> str:
    """A broker's ``message`` behind the ``subject`` it is about, unless it has the subject's ``name`` in it:
    some brokers' messages do, some do not, and some brokers send none.
    """
    if not message:
        return subject
    return (
        message if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", message) else f"{subject}: {message}"
    )


def refusal(code: int, subject: str, name: str, message: str | None) -> KafkaError:
    """The exception for a broker's refusal, which tells what it is `about`."""
    error = error_for(code, about(subject, name, message))
    error.said = message
    return error

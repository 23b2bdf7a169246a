"""Errors as the Java tools name them: by the exception's class, with Kafka's text for the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_client.errors import KafkaError

COMMON = "org.apache.kafka.common"
TOOLS = "org.apache.kafka.tools"
NO_NODE = "Timed out waiting for a node assignment"


class JavaError(Exception):
    """An exception of a Java tool. `java_class` is its class's full name, `str()` its `getMessage()`."""

    def __init__(self, java_class: str, message: str | None) -> None:
        super().__init__(java_class, message)
        self.java_class = java_class
        self.message = message
        self.from_future = False
        """True if a call of the admin client failed: its `get()` wraps the exception."""

    def __str__(self) -> str:
        return "null" if self.message is None else self.message

    @property
    def full_text(self) -> str:
        """The text of `toString()`: the class, and the message if there is one."""
        return self.java_class if self.message is None else f"{self.java_class}: {self.message}"

    @property
    def thrown(self) -> str:
        """The text of `toString()` after `get()`: an ExecutionException if an admin call failed."""
        return (
            f"java.util.concurrent.ExecutionException: {self.full_text}"
            if self.from_future
            else self.full_text
        )

    @property
    def is_unreachable(self) -> bool:
        """True if the error means that no broker answered."""
        return self.from_future and (self.message or "").startswith(NO_NODE)

    @property
    def caught(self) -> str:
        """The text of `getMessage()` after `get()`: an ExecutionException includes the cause's class."""
        return self.full_text if self.from_future else str(self)


def illegal_argument(message: str) -> JavaError:
    """Return an IllegalArgumentException."""
    return JavaError("java.lang.IllegalArgumentException", message)


def terse(message: str) -> JavaError:
    """Return the tools' TerseException, which is printed without its stack."""
    return JavaError(f"{TOOLS}.TerseException", message)


def timed_out(message: str) -> JavaError:
    """Return the TimeoutException of Kafka's clients."""
    return JavaError(f"{COMMON}.errors.TimeoutException", message)


def of_answer(error: KafkaError) -> JavaError:
    """Return the exception of Kafka's clients for an error response, with the broker's message or the code's
    default one.
    """
    from millstream.kafka_tools.java.error_texts import ERROR_TEXTS

    name, text = ERROR_TEXTS[error.code.name]
    if error.code.name == "UNSUPPORTED_VERSION" and (api := re.match(r"([A-Z_]+): we speak", error.message)):
        # Our client noticed it without a request, as Java's does.
        text = f"The node does not support {api[1]}"
    return JavaError(f"{COMMON}.{name}", text if error.broker_message is None else error.broker_message)


def java_error(error: BaseException, call: str) -> JavaError:
    """Return the exception that Java's admin client throws in `call` for an error of our client."""
    from kafka_client.errors import (
        AuthenticationFailed,
        ConfigError,
        ConnectionClosed,
        KafkaError,
        RequestTimedOut,
    )

    if isinstance(error, JavaError):
        return error
    if isinstance(error, KafkaError):
        return of_answer(error)
    if isinstance(error, AuthenticationFailed):
        return JavaError(f"{COMMON}.errors.SaslAuthenticationException", str(error))
    if isinstance(error, (ConnectionClosed, RequestTimedOut, TimeoutError, ConnectionError)):
        return timed_out(f"{NO_NODE}. Call: {call}")
    if isinstance(error, ConfigError):
        return JavaError(f"{COMMON}.config.ConfigException", str(error))
    return JavaError(f"{COMMON}.KafkaException", str(error))


def admin_operation(message: str) -> JavaError:
    """Return the tools' AdminOperationException."""
    return JavaError(f"{TOOLS}.AdminOperationException", message)


def command_failed(message: str) -> JavaError:
    """Return the tools' AdminCommandFailedException."""
    return JavaError(f"{TOOLS}.AdminCommandFailedException", message)


@contextmanager
def wrapped(call: str) -> Iterator[None]:
    """Raise failures of the admin client's `call` as RuntimeException, as tools do that catch the
    ExecutionException themselves.
    """
    from kafka_client.errors import MillstreamError

    try:
        yield
    except (MillstreamError, TimeoutError, ConnectionError) as error:
        text = f"java.util.concurrent.ExecutionException: {java_error(error, call).full_text}"
        raise JavaError("java.lang.RuntimeException", text) from error


@contextmanager
def unwrapped(call: str) -> Iterator[None]:
    """Raise failures of the admin client's `call` without the ExecutionException."""
    from kafka_client.errors import MillstreamError

    try:
        yield
    except (MillstreamError, TimeoutError, ConnectionError) as error:
        raise java_error(error, call) from error

"""Handlers of bad records, their arguments and answers (KIP-1033), and dead letters (KIP-1034).

A handler is a function of ``(error)``, or of ``(error, context)``. It returns ``"fail"``, ``"continue"`` or
an `ErrorResponse`. `topology` calls it for processing and output, and `runtime` for input.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from streams.errors import StreamsError

ExceptionAnswer = Literal["fail", "continue"]
Headers = tuple[tuple[str, bytes | None], ...]

HEADER_PREFIX = "__streams.errors."
"""Prefix of the headers that describe a dead letter's error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record for a dead-letter topic; ``timestamp`` in ms since the epoch."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """A handler's answer, with dead letters to write.

    Dead letters are part of their task's commit. One that is refused itself is dropped and logged.
    """

    answer: ExceptionAnswer
    dead_letters: tuple[DeadLetter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """An error, and the input record being processed.

    ``topic``, ``partition``, ``offset``, ``timestamp`` (ms), ``headers``, ``key`` and ``value`` (bytes as
    read) are the input's. They are "", -1 and None if there is no input record, as in a schedule.

    If the broker refuses a record, or if it is too large to be sent, the input is no longer known. Then
    these fields are those of the refused record and its target, and ``offset`` is -1.
    """

    error: Exception
    node: str
    task_id: str
    topic: str = ""
    partition: int = -1
    offset: int = -1
    timestamp: int = -1
    headers: Headers = ()
    key: bytes | None = None
    value: bytes | None = None
    record: Any = None
    """The node's input, a `streams.Record`; None if the input record cannot be deserialized."""
    dead_letter_topic: str | None = None
    """The setting ``errors.dead.letter.queue.topic.name``."""

    def dead_letter(self, topic: str | None = None) -> DeadLetter:
        """Return the input record for ``topic``, or the configured topic, with headers about the error.

        Raises StreamsError if ``topic`` is not given and none is configured.
        """
        target = topic or self.dead_letter_topic
        if target is None:
            raise StreamsError(
                "a dead letter needs a topic: give one, or set errors.dead.letter.queue.topic.name"
            )
        error_headers = {
            "exception": f"{type(self.error).__qualname__}: {self.error}",
            "stacktrace": "".join(traceback.format_exception(self.error)),
            "message": str(self.error),
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
        }
        return DeadLetter(
            topic=target,
            key=self.key,
            value=self.value,
            timestamp=max(self.timestamp, 0),
            headers=tuple((HEADER_PREFIX + name, text.encode()) for name, text in error_headers.items()),
        )


ExceptionHandler = (
    Callable[[Exception], ExceptionAnswer | ErrorResponse]
    | Callable[[Exception, ErrorContext], ExceptionAnswer | ErrorResponse]
)


def log_and_fail(error: Exception, context: ErrorContext | None = None) -> ExceptionAnswer:
    """Stop the application at the first bad record: the default."""
    return "fail"


def log_and_continue(
    error: Exception, context: ErrorContext | None = None
) -> ExceptionAnswer | ErrorResponse:
    """Drop bad records; they are logged and counted as dropped.

    They are also written to the dead-letter topic, if ``errors.dead.letter.queue.topic.name`` is set.
    """
    if context is None or context.dead_letter_topic is None:
        return "continue"
    return ErrorResponse(answer="continue", dead_letters=(context.dead_letter(),))


Answering = Callable[[ErrorContext], ErrorResponse]
"""A handler in its uniform form: it takes a context and returns a full response."""


def answering(handler: ExceptionHandler) -> Answering:
    """Return the uniform form of a handler of one or two arguments; its signature is inspected once, here."""
    call: Any = handler
    with_context = _takes_context(handler)

    def answer(context: ErrorContext) -> ErrorResponse:
        response = call(context.error, context) if with_context else call(context.error)
        if isinstance(response, ErrorResponse):
            return response
        if response not in ("fail", "continue"):
            raise StreamsError(
                f"handler {_name(handler)} answered {response!r}: it may answer 'fail', 'continue' or an "
                "ErrorResponse"
            ) from context.error
        return ErrorResponse(answer=response)

    return answer


def _takes_context(handler: ExceptionHandler) -> bool:
    try:
        inspect.signature(handler).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _name(handler: object) -> str:
    return str(getattr(handler, "__qualname__", handler))

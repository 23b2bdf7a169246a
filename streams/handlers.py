"""What the handler of a bad record is told and may answer (KIP-1033), and dead letters (KIP-1034).

A handler is a function of ``(error)``, or of ``(error, context)``; it returns ``"fail"``, ``"continue"`` or
an `ErrorResponse`. It is called by `topology` for processing and output, and by `runtime` for input.
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
    """A handler's answer, and records it wants written.

    Dead letters are part of the commit of their task; one that is refused itself is left out, and logged.
    """

    answer: ExceptionAnswer
    dead_letters: tuple[DeadLetter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorContext:
    """An error, and the input record that was being worked on.

    Of a record that the broker refuses, or that is too large to be sent, the input is not known any more:
    ``topic``, ``partition``, ``timestamp``, ``headers``, ``key`` and ``value`` are those of the refused
    record, where it was sent to, and ``offset`` is -1.

    Else ``topic``, ``partition``, ``offset``, ``timestamp`` (ms), ``headers``, ``key`` and ``value`` (bytes
    as read) are the input's: "", -1 and None where there is none, as in a schedule. ``record`` is what the
    node was given, a `streams.Record` of Python values; None for an input that cannot be deserialized.
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
    dead_letter_topic: str | None = None
    """``errors.dead.letter.queue.topic.name``."""

    def dead_letter(self, topic: str | None = None) -> DeadLetter:
        """Return the input record for ``topic``, else the configured one, with headers about the error.

        Raises StreamsError if ``topic`` is not given and none is configured.
        """
        wanted = topic or self.dead_letter_topic
        if wanted is None:
            raise StreamsError(
                "a dead letter needs a topic: give one, or set errors.dead.letter.queue.topic.name"
            )
        told = {
            "exception": f"{type(self.error).__qualname__}: {self.error}",
            "stacktrace": "".join(traceback.format_exception(self.error)),
            "message": str(self.error),
            "topic": self.topic,
            "partition": str(self.partition),
            "offset": str(self.offset),
        }
        return DeadLetter(
            topic=wanted,
            key=self.key,
            value=self.value,
            timestamp=max(self.timestamp, 0),
            headers=tuple((HEADER_PREFIX + name, text.encode()) for name, text in told.items()),
        )


ExceptionHandler = (
    Callable[[Exception], ExceptionAnswer | ErrorResponse]
    | Callable[[Exception, ErrorContext], ExceptionAnswer | ErrorResponse]
)


def log_and_fail(error: Exception, context: ErrorContext | None = None) -> ExceptionAnswer:
    """Stop the application on the first bad record: the default."""
    return "fail"


def log_and_continue(
    error: Exception, context: ErrorContext | None = None
) -> ExceptionAnswer | ErrorResponse:
    """Leave bad records out; they are logged, counted as dropped, and written to the dead-letter topic if
    ``errors.dead.letter.queue.topic.name`` names one.
    """
    if context is None or context.dead_letter_topic is None:
        return "continue"
    return ErrorResponse(answer="continue", dead_letters=(context.dead_letter(),))


Answering = Callable[[ErrorContext], ErrorResponse]
"""A handler as it is called: with the context, and answering in full."""


def answering(handler: ExceptionHandler) -> Answering:
    """Return a handler of one argument or two in one form; its signature is inspected here, once."""
    call: Any = handler
    with_context = _takes_context(handler)

    def answer(context: ErrorContext) -> ErrorResponse:
        found = call(context.error, context) if with_context else call(context.error)
        if isinstance(found, ErrorResponse):
            return found
        if found not in ("fail", "continue"):
            raise StreamsError(
                f"handler {_name(handler)} answered {found!r}: it may answer 'fail', 'continue' or an "
                "ErrorResponse"
            ) from context.error
        return ErrorResponse(answer=found)

    return answer


def _takes_context(handler: ExceptionHandler) -> bool:
    try:
        inspect.signature(handler).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _name(handler: object) -> str:
    return str(getattr(handler, "__qualname__", handler))

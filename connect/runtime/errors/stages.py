"""The stages of a record's way through a task, and the error of one record at one of them."""

from __future__ import annotations

from enum import StrEnum

from connect.errors import ConnectError


class Stage(StrEnum):
    """A stage of a record's way, by the names of Kafka Connect."""

    TASK_PUT = "TASK_PUT"
    TASK_POLL = "TASK_POLL"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class StageError(ConnectError):
    """An error of one record at one stage.

    `part`: what failed, in words, as "value". `executing_class`: the class that failed. `cause`: the error.
    """

    def __init__(self, stage: Stage, part: str, executing_class: str, cause: BaseException) -> None:
        words = str(cause) if isinstance(cause, ConnectError) else repr(cause)
        super().__init__(f"{part}: {words}")
        self.stage = stage
        self.executing_class = executing_class
        self.cause = cause
        self.__cause__ = cause


def class_name(of: object) -> str:
    """Return the full name of an object's class."""
    kind = type(of)
    return f"{kind.__module__}.{kind.__qualname__}"

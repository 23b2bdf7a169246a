"""The messages between a worker and a task's process: msgpack behind a length of four bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from connect.errors import ConnectError

MESSAGE_BYTES_MAX = 16 << 20
"""Bound of one message. Neither side makes room for a longer one."""
_LENGTH = struct.Struct(">I")
LENGTH_BYTES = _LENGTH.size
Numbers = Mapping[str, float]


class PluginPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin in a folder of `plugin.path`: see `connect.config.plugin_path.PluginFolder`."""

    folder: str
    modules: Sequence[str]
    location: str
    version: str | None
    reference: str
    """`module:Class` of the connector."""


class TransactionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The names that a task with transactions needs."""

    transactional_id: str
    offsets_topic: str
    """The topic that has the task's source offsets in its transactions."""


class TaskSpec(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """All that a process needs to run one task. It holds secrets, so it goes over the socket alone."""

    connector: str
    task_id: int
    config: Mapping[str, str]
    """The task's own config, with the values of its variables, like the next two."""
    connector_config: Mapping[str, Any]
    worker: Mapping[str, Any]
    """The worker's settings, of which the task's clients are made."""
    is_paused: bool
    parent: int
    """The worker's process id."""
    import_path: Sequence[str]
    """`sys.path` of the worker."""
    log_levels: Mapping[str, int]
    """Levels by logger, "" for the root."""
    plugin: PluginPlace | None = None
    """Where the plugin is, if it is in a folder of `plugin.path`."""
    transactions: TransactionSpec | None = None
    """None for a task without transactions."""


class Pause(msgspec.Struct, frozen=True, tag=True):
    """A request to pause the task."""


class Resume(msgspec.Struct, frozen=True, tag=True):
    """A request to resume the task."""


class ForgetTopics(msgspec.Struct, frozen=True, tag=True):
    """A request to report again each topic that the task uses from now on."""


class Stop(msgspec.Struct, frozen=True, tag=True):
    """A request to stop the task, and to end the process."""


class RequestCommit(msgspec.Struct, frozen=True, tag=True):
    """A request to commit a sink's offsets soon."""


class RateLimits(msgspec.Struct, frozen=True, tag=True):
    """The rate limits of the connector, and the number of its tasks, which share them."""

    config: Mapping[str, str]
    tasks: int


class StoredOffsets(msgspec.Struct, frozen=True, tag=True):
    """A part of the connector's offsets, as an answer to ReadOffsets; `is_last` ends the answer."""

    request: int
    offsets: Mapping[bytes, bytes]
    is_last: bool


class OffsetsPut(msgspec.Struct, frozen=True, tag=True):
    """The answer to PutOffsets; `error` tells why they are not stored."""

    request: int
    error: str | None


class OffsetsSpelled(msgspec.Struct, frozen=True, tag=True):
    """The answer to SpellOffsets: keys and values by the offset topic's partition."""

    request: int
    parts: Mapping[int, Sequence[tuple[bytes, bytes | None]]]


class Granted(msgspec.Struct, frozen=True, tag=True):
    """The answer to a request of a task with transactions; `generation`: see Fence."""

    request: int
    generation: int | None


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The answer to such a request that failed."""

    request: int
    error: str


class Report(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """State and counts of the task."""

    state: str
    trace: str | None
    version: str
    """The version of the plugin that runs."""
    is_done: bool
    is_last: bool
    """True if the process ends now."""
    starts: tuple[int, int]
    """The numbers of successful and of failed starts, 0 or 1."""
    statistics: Mapping[str, Any]
    values: Mapping[str, Numbers]
    queued: Numbers
    plugin_values: Numbers
    calls: Numbers
    rate: Numbers
    cpu_seconds: float
    """Time of the process."""
    byte_count: int
    """Bytes of keys and values, if they are counted."""


class TopicUsed(msgspec.Struct, frozen=True, tag=True):
    """The first use of a topic."""

    topic: str


class LogLine(msgspec.Struct, frozen=True, tag=True):
    """A log line of the process."""

    logger: str
    level: int
    text: str
    created: float
    """Seconds since 1970."""


class ReadOffsets(msgspec.Struct, frozen=True, tag=True):
    """A request for the connector's newest offsets. Answers have its number."""

    request: int


class PutOffsets(msgspec.Struct, frozen=True, tag=True):
    """A request to store offsets; None deletes its key. The answer has its number."""

    request: int
    offsets: Mapping[bytes, bytes | None]


class Fence(msgspec.Struct, frozen=True, tag=True):
    """A request to keep older tasks from writing; the answer has the generation of the connector's plans."""

    request: int


class CheckTask(msgspec.Struct, frozen=True, tag=True):
    """A request whether the task is still the worker's, in a generation that Fence has returned."""

    request: int
    generation: int | None


class SpellOffsets(msgspec.Struct, frozen=True, tag=True):
    """A request for the records that store these offsets."""

    request: int
    offsets: Mapping[bytes, bytes | None]


class NoteCommitted(msgspec.Struct, frozen=True, tag=True):
    """A request to note the offsets of a committed transaction.

    `parts` are those of OffsetsSpelled; `firsts` has the offset of each part's first record, if it is known.
    """

    request: int
    offsets: Mapping[bytes, bytes]
    parts: Mapping[int, Sequence[tuple[bytes, bytes | None]]]
    firsts: Mapping[int, int]


TransactionRequest = Fence | CheckTask | SpellOffsets | NoteCommitted
ToTask = (
    TaskSpec
    | Pause
    | Resume
    | ForgetTopics
    | Stop
    | RequestCommit
    | RateLimits
    | StoredOffsets
    | OffsetsPut
    | OffsetsSpelled
    | Granted
    | Refused
)
FromTask = Report | TopicUsed | LogLine | ReadOffsets | PutOffsets | TransactionRequest
_ENCODER = msgspec.msgpack.Encoder()
_TO_TASK: msgspec.msgpack.Decoder[ToTask] = msgspec.msgpack.Decoder(ToTask)
_FROM_TASK: msgspec.msgpack.Decoder[FromTask] = msgspec.msgpack.Decoder(FromTask)


def encoded(message: ToTask | FromTask) -> bytes:
    """Return a message with its length. Raises ConnectError if it is longer than the bound."""
    body = _ENCODER.encode(message)
    if len(body) > MESSAGE_BYTES_MAX:
        raise ConnectError(
            f"{type(message).__name__} has {len(body)} bytes; a task's process takes {MESSAGE_BYTES_MAX} "
            "at most: use task.isolation=thread"
        )
    return _LENGTH.pack(len(body)) + body


def length(header: bytes) -> int:
    """Return the length of the message behind this header. Raises ConnectError if it is too long."""
    size: int = _LENGTH.unpack(header)[0]
    if size > MESSAGE_BYTES_MAX:
        raise ConnectError(f"a message of {size} bytes is longer than {MESSAGE_BYTES_MAX}")
    return size


def to_task(body: bytes) -> ToTask:
    """Return a message of the worker. Raises ConnectError if it is none."""
    try:
        return _TO_TASK.decode(body)
    except msgspec.MsgspecError as e:
        raise ConnectError(f"the worker sent what is no message: {e}") from e


def from_task(body: bytes) -> FromTask:
    """Return a message of a task's process. Raises ConnectError if it is none."""
    try:
        return _FROM_TASK.decode(body)
    except msgspec.MsgspecError as e:
        raise ConnectError(f"the task's process sent what is no message: {e}") from e

"""What flows between nodes: four arguments per record, or a `Record` for those who write processors.

Operators are composed closures; a record passes them as plain arguments, which costs no allocation.

Where several records are at hand at once, as at a commit, nodes that can take them together do so
(`with_many`, `many`): a loop within each node costs less than a call of each node for each record. What comes
of it is the same in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Process: TypeAlias = Callable[[Any, Any, int, Headers], None]
"""Takes key, value, timestamp (ms) and headers of one record."""
RecordTuple: TypeAlias = tuple[Any, Any, int, Headers]
"""The same, of a record among several."""
ProcessMany: TypeAlias = Callable[[list[RecordTuple]], None]
"""Takes several records."""


InputRecord: TypeAlias = tuple[int, Any, Any, Headers, int]
"""Event time (ms), key, value, headers and offset of an input's record."""
ProcessRun: TypeAlias = Callable[[list[InputRecord]], None]
"""Takes records of an input that follow each other. If it raises, the task's offset is that of the record in
work, and all before it are processed.
"""


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """One record as a low-level processor sees it. ``timestamp`` is in ms since the epoch."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record[Any, V]:
        """The same record under another key."""
        return replace(self, key=key)

    def with_value(self, value: Any) -> Record[K, Any]:
        """The same record with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """The same record at another time, ms since the epoch."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """The same record with other headers."""
        return replace(self, headers=headers)


class RecordContext(NamedTuple):
    """Where a record came from, its timestamp (ms) and headers; "" and -1 where it came from no topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: Headers


def discard(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
    """What a node without children forwards to."""


T = TypeVar("T")


def with_many(
    process: Process,
    transform: Callable[[list[RecordTuple]], list[T]],
    forward: Callable[[list[T]], None],
) -> Process:
    """The process of a node that makes some records of others, and keeps nothing of them: several at once are
    what ``transform`` makes of them.

    Where that raises, they are processed one by one, so that those before the bad one go on, and it is known.
    """

    def take(records: list[RecordTuple]) -> None:
        try:
            made = transform(records)
        except Exception:
            _each(process, records)
        else:
            forward(made)

    cast(Any, process).many = take
    return process


def many(process: Process) -> ProcessMany:
    """What takes several records of a process: its own way, or one after the other."""
    own: ProcessMany | None = getattr(process, "many", None)
    return partial(_each, process) if own is None else own


def run_of(process: Process) -> ProcessRun | None:
    """What takes runs of records, if the process is `with_run`."""
    run: ProcessRun | None = getattr(process, "run", None)
    return run


def _each(process: Process, records: list[RecordTuple]) -> None:
    for key, value, timestamp, headers in records:
        process(key, value, timestamp, headers)


def fan_out(children: list[Process]) -> Process:
    """One function that calls all children, in order."""
    if not children:
        return discard
    if len(children) == 1:
        return children[0]
    branches = tuple(children)

    def forward(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for branch in branches:
            branch(key, value, timestamp, headers)

    return forward

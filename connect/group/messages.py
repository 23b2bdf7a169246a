"""Messages of the Connect group protocol: a worker's state for the leader, and its assignment (KIP-415).

protocol     version   KIP
default      0         eager: all is revoked before each rebalance, state and assignment are shorter
compatible   1         415: the state has the present assignment, the assignment has revoked units, a delay
sessioned    2         507: as compatible, and requests between workers are signed
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from connect.errors import ConnectError
from connect.group.units import CONNECTOR, Unit

PROTOCOLS = {"sessioned": 2, "compatible": 1, "default": 0}
"""The version of each protocol; the preferred one first."""
NO_ERROR, CONFIG_MISMATCH = 0, 1
"""Errors of an assignment. With CONFIG_MISMATCH the leader is behind: read configs, join again."""
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An assignment: from the leader what is new, in a worker's state all that the worker has."""

    version: int = PROTOCOLS["sessioned"]
    error: int = NO_ERROR
    leader: str = ""
    """The leader's member id."""
    leader_url: str = ""
    """The address of the leader's REST interface."""
    config_offset: int = -1
    """The offset in the config topic that a worker has read up to before it acts."""
    units: tuple[Unit, ...] = ()
    """From the leader: what is new. In a worker's state: all that the worker has."""
    revoked: tuple[Unit, ...] = ()
    """The units that the worker stops before it joins again."""
    delay_ms: int = 0
    """The time until the next rebalance, 0 if none is scheduled."""

    def following(self, before: Assignment | None) -> Assignment:
        """Return this assignment with what the worker keeps of the one before."""
        if before is None or self.version == 0:
            return self
        remaining = tuple(
            unit for unit in before.units if unit not in self.revoked and unit not in self.units
        )
        return replace(self, units=(*self.units, *remaining))

    def encode(self) -> bytes:
        """Encode the assignment in its version."""
        encoded = [
            _INT16.pack(self.version),
            _INT16.pack(self.error),
            _string(self.leader),
            _string(self.leader_url),
            _INT64.pack(self.config_offset),
            _units(self.units),
        ]
        if self.version > 0:
            encoded += [_units(self.revoked), _INT32.pack(self.delay_ms)]
        return b"".join(encoded)

    @classmethod
    def decode(cls, data: bytes) -> Assignment:
        """Decode an assignment of any version. Raises ConnectError if it is malformed."""
        reader = _Reader(data)
        version, error = reader.int16(), reader.int16()
        if version < 0:
            raise ConnectError(f"an assignment has the version {version}, which there is not")
        return cls(
            version=version,
            error=error,
            leader=reader.string(),
            leader_url=reader.string(),
            config_offset=reader.int64(),
            units=reader.units(),
            revoked=reader.units() if version > 0 and not reader.is_at_end else (),
            delay_ms=reader.int32() if version > 0 and not reader.is_at_end else 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """A worker's state, for the leader, when the worker joins."""

    url: str
    """The address of its REST interface."""
    config_offset: int
    """The offset in the config topic that it has read up to."""
    assignment: Assignment | None = field(default=None)
    """All that the worker has at present; None if it has never had an assignment."""
    report: bytes = b""
    """A worker's `LoadReport`, if it places by load; Kafka's workers read over it."""

    def encode(self, version: int) -> bytes:
        """Encode the state for the protocol of this version."""
        state = _INT16.pack(version) + _string(self.url) + _INT64.pack(self.config_offset)
        if version == 0:
            return state
        report = _INT32.pack(len(self.report)) + self.report if self.report else b""
        if self.assignment is None:
            return state + _INT32.pack(-1) + report
        assignment = replace(self.assignment, version=version).encode()
        return state + _INT32.pack(len(assignment)) + assignment + report

    @classmethod
    def decode(cls, data: bytes) -> WorkerState:
        """Decode a state of any version. Raises ConnectError if it is malformed."""
        reader = _Reader(data)
        version, url, config_offset = reader.int16(), reader.string(), reader.int64()
        if version < 0:
            raise ConnectError(f"a worker's state has the version {version}, which there is not")
        allocation = reader.bytes() if version > 0 and not reader.is_at_end else None
        assignment = None if allocation is None else Assignment.decode(allocation)
        report = reader.bytes() if version > 0 and not reader.is_at_end else None
        return cls(url=url, config_offset=config_offset, assignment=assignment, report=bytes(report or b""))


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def _units(units: Iterable[Unit]) -> bytes:
    """Encode units by connector, each connector's own unit first, as Kafka's ConnectProtocol does."""
    tasks: dict[str, list[int]] = {}
    ordered = sorted(units, key=lambda unit: not unit.is_connector)
    for unit in ordered:
        tasks.setdefault(unit.connector, []).append(unit.task)
    encoded = [_INT32.pack(len(tasks))]
    for connector, numbers in tasks.items():
        encoded += [_string(connector), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join(encoded)


class _Reader:
    """Reads fields of a message. All raise ConnectError where the message is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return self._position >= len(self._data)

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def string(self) -> str:
        try:
            return bytes(self._take(self.int16())).decode()
        except UnicodeDecodeError as e:
            raise ConnectError(f"a message of the Connect group has a text that is not UTF-8: {e}") from e

    def bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else bytes(self._take(size))

    def units(self) -> tuple[Unit, ...]:
        """Return units; none for a null array. A count takes no memory before its items are read."""
        units: list[Unit] = []
        for _ in range(self.int32()):
            connector = self.string()
            units += [Unit(connector, self.int32()) for _ in range(self.int32())]
        return tuple(sorted(units, key=lambda unit: unit.task != CONNECTOR))

    def _number(self, form: struct.Struct) -> int:
        number: int = form.unpack(self._take(form.size))[0]
        return number

    def _take(self, size: int) -> memoryview:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise ConnectError(
                f"a message of the Connect group is too short: {size} bytes at {self._position} of"
                f" {len(self._data)}"
            )
        field_bytes = self._data[self._position : end]
        self._position = end
        return field_bytes

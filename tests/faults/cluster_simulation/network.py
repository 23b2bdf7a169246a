"""The network in memory: streams of bytes between machines, late, parted and cut off by chance.

A stream keeps its order, as TCP does. Where two places are parted nothing gets through: bytes wait until they
are together again, and who connects waits as well. What a process has sent before it was killed arrives, then
its connections are reset; a machine without power says nothing, and who talks to it finds out by waiting.

With `late_s` what waited arrives up to so much later than the two are together: TCP tries again after pauses
that double, and does so for a closed socket, too (on Linux for 100 s or so). A connection that is made
meanwhile is not held up: a request may arrive behind one that was sent after it. What was stuck on a
connection that was reset is gone; but between brokers it may have reached the other machine already, and is
read late. A connection between brokers that breaks may do so on one side first. Some requests of brokers, but
for those of followers, come so late by themselves: the packets of that connection are lost for a while. No
other request from the same broker to the same one is lost until then, so that it is overtaken.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kafka_client.records.slice import FileSlice
from kafka_client.wire.messages.fetch import FetchRequest
from kafka_client.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.faults.cluster_simulation.loop import SimulatedLoop
from tests.faults.cluster_simulation.machine import LIFE, NOBODY, Life

Address = tuple[str, int]
STEP_S = 1e-7
"""Between two pieces of a stream."""
LOST = {FetchRequest.API_KEY: 0.0, WriteTxnMarkersRequest.API_KEY: 0.4}
"""How many requests between brokers are late, by their API, in histories in which some are."""
LOST_OTHERS = 0.05
RETRANSMITTED_S = 1.0
"""How long after a machine has power again something comes that was sent before, at most."""
SILENT_S = 5.0
"""How long a stream to a machine without power lasts at most (its own timeouts end it sooner)."""


class Listening(NamedTuple):
    """Who listens: a protocol is made for each connection, in the life's context."""

    factory: Callable[[], Any]
    life: Life
    context: contextvars.Context


class Late(NamedTuple):
    """A request from one place to another that arrives late: at `at`."""

    sender: str
    receiver: str
    at: float


class BoundSocket:
    """In place of the socket that a listener binds."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def getsockname(self) -> Address:
        """See `socket.socket`."""
        return self.address

    def setsockopt(self, *_: object) -> None:
        """See `socket.socket`."""

    def close(self) -> None:
        """See `socket.socket`."""


class Acceptor:
    """In place of `logd.server.acceptor.Acceptor`."""

    def __init__(self, listening: BoundSocket, factory: Callable[[], Any], pause_s: object = None) -> None:
        loop = asyncio.get_running_loop()
        self._network: Network = loop.network  # type: ignore[attr-defined]
        self._address = listening.address
        self._factory = factory

    def start(self, _backlog: int) -> None:
        """Take connections; whatever comes by them belongs to the life that listens."""
        life = LIFE.get()
        assert life is not None
        listening = Listening(self._factory, life, contextvars.copy_context())
        self._network.listening[self._address] = listening

    async def close(self) -> None:
        """Listen no more."""
        self._network.listening.pop(self._address, None)


class Network:
    """`slow` and `slow_s`: how often a piece is late, and by how much at most."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.rng = loop.rng
        self.listening: dict[Address, Listening] = {}
        self.slow = 0.0
        self.slow_s = 0.0
        self.late_s = 0.0
        """How much later than expected what was stuck arrives, at most."""
        self.peers: frozenset[str] = frozenset()
        """The brokers' places."""
        self._late_until: dict[tuple[str, str], float] = {}
        """By sender and receiver: when the last request that was lost on its way arrives."""
        self.markers_are_late: Callable[[Late], None] | None = None
        """Called with late markers, when they are sent."""
        self.streams: dict[int, Stream] = {}
        self._numbers = 0
        self._hosts: dict[str, str] = {}
        self._parted: set[tuple[str, str]] = set()
        self._together: asyncio.Future[None] | None = None
        self._waiting: list[tuple[Stream, Callable[..., None], tuple[Any, ...]]] = []
        self.dark: set[str] = set()
        """Places without power: a connection attempt there waits."""

    def latency(self) -> float:
        """Return the latency in seconds of one piece on its way."""
        rng = self.rng
        delay = 0.0001 + rng.random() * 0.001
        if self.slow and rng.random() < self.slow:
            delay += rng.random() * self.slow_s
        return delay

    # Parting

    def part(self, pairs: Iterable[tuple[str, str]]) -> None:
        """From now on nothing gets from the one to the other of each pair."""
        self._parted.update(pairs)

    def join(self, pairs: Iterable[tuple[str, str]] | None = None) -> None:
        """Have these together again, or all: what waited goes on its way."""
        self._parted.difference_update(tuple(self._parted) if pairs is None else pairs)
        together, self._together = self._together, None
        if together is not None:
            together.set_result(None)
        waiting, self._waiting = self._waiting, []
        if self.late_s:
            for stream in dict.fromkeys(stream for stream, *_ in waiting):
                stream.be_late()
        for stream, what, arguments in waiting:
            stream.send_on(what, *arguments)

    def loses(self, request: bytes | bytearray | memoryview, one: Life, other: Life) -> bool:
        """Return True if a request's packets are lost for a while."""
        if not self.late_s or not self.peers >= {one.place, other.place}:
            return False
        if self.loop.time() < self._late_until.get((one.place, other.place), 0.0):
            return False  # what comes after it by another connection is to overtake it
        return self.rng.random() < LOST.get(_api_key(request), LOST_OTHERS)

    def lost(self, request: bytes | bytearray | memoryview, stream: Stream, until: float) -> None:
        """Note a request that arrives late, and report it if it is one for markers."""
        late = Late(stream.life.place, stream.other.life.place, until)
        self._late_until[late.sender, late.receiver] = until
        if self.markers_are_late is not None and _api_key(request) == WriteTxnMarkersRequest.API_KEY:
            self.markers_are_late(late)

    def forget(self, stream: Stream) -> None:
        """Drop what waits of a stream, so that it is not sent again."""
        self._waiting = [each for each in self._waiting if each[0] is not stream]

    def arrives_all_the_same(self, one: Life, other: Life) -> bool:
        """Return True if what was sent on a connection that is reset had arrived, and is read late."""
        return self.peers >= {one.place, other.place} and bool(self.late_s) and self.rng.random() < 0.8

    def is_parted(self, one: str, other: str) -> bool:
        """Return True if nothing gets from one place to the other."""
        return (one, other) in self._parted

    def wait(self, stream: Stream, what: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Hold back what is sent between parted places until `join`."""
        self._waiting.append((stream, what, arguments))

    # Connecting

    def bind(self, endpoint: Any) -> BoundSocket:
        """Bind an endpoint, in place of `logd.server.listener._bound_socket`."""
        return BoundSocket((endpoint.host, endpoint.port))

    async def connect(self, factory: Callable[[], Any], address: Address) -> tuple[asyncio.Transport, Any]:
        """See `asyncio.AbstractEventLoop.create_connection`."""
        life = LIFE.get()
        assert life is not None, "a process connects"
        await asyncio.sleep(self.latency())
        while self._is_cut_off(life.place, address[0]):
            if self._together is None:
                self._together = NOBODY.run(self.loop.create_future)
            await asyncio.shield(self._together)
            await asyncio.sleep(self.latency())
        if address[0] in self.dark:
            await asyncio.sleep(SILENT_S)
        listening = self.listening.get(address)
        if listening is None or listening.life.is_dead:
            raise ConnectionRefusedError(f"{address[0]}:{address[1]} refuses")
        here = Stream(self, life, contextvars.copy_context(), address)
        there = Stream(self, listening.life, listening.context, (self._host_of(life.place), here.number))
        here.other, there.other = there, here
        here.asks = True
        here.protocol = factory()
        here.protocol.connection_made(here)
        self.loop.call_soon(there.begin, listening.factory, context=listening.context)
        return here, here.protocol

    def _host_of(self, place: str) -> str:
        """Return a client's IP address, which brokers pass on with its request. Brokers listen at names."""
        return self._hosts.setdefault(place, f"10.0.0.{len(self._hosts) + 1}")

    def _is_cut_off(self, one: str, other: str) -> bool:
        return self.is_parted(one, other) or self.is_parted(other, one)

    def number(self, stream: Stream) -> int:
        """Number a new stream."""
        self._numbers += 1
        self.streams[self._numbers] = stream
        return self._numbers

    def ended(self, life: Life, *, silently: bool) -> None:
        """End a dead process's connections: they are reset, or fall silent with its machine."""
        for address in [each for each, listening in self.listening.items() if listening.life is life]:
            del self.listening[address]
        for stream in [each for each in self.streams.values() if each.life is life]:
            del self.streams[stream.number]
            if not silently:
                stream.other.reset_later()

    def has_power_again(self, place: str) -> None:
        """Its machine knows nothing of connections from before, and resets those on which something comes."""
        self.dark.discard(place)
        for stream in list(self.streams.values()):
            if stream.other.life.is_dead and stream.other.life.place == place and stream.is_unheard:
                self.loop.call_later(
                    self.rng.random() * RETRANSMITTED_S, stream.reset, context=stream.context
                )

    def drop(self, one: str, other: str) -> None:
        """Have the connections between two places break."""
        for stream in list(self.streams.values()):
            if stream.life.place == one and stream.other.life.place == other:
                stream.break_down()


class Stream(asyncio.Transport):
    """An end of a connection; `life` is the process that has it."""

    other: Stream
    protocol: Any

    def __init__(self, network: Network, life: Life, context: contextvars.Context, peer: Address) -> None:
        super().__init__()
        self.life = life
        self._network = network
        self._loop = network.loop
        self.context = context
        self._peer = peer
        self.asks = False
        """Whether it is the side that has connected, and writes requests one at a time."""
        self._is_closed = False
        self._is_reading = True
        self.is_unheard = False
        """Something was sent to a machine without power."""
        self._unread: list[bytes] = []
        self._next_at = 0.0
        self._late_until = 0.0
        self._resets = False
        self.number = network.number(self)

    def begin(self, factory: Callable[[], Any]) -> None:
        """Tell the side that was connected to."""
        self.protocol = factory()
        self.protocol.connection_made(self)

    # asyncio's side

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See `asyncio.BaseTransport`; the socket's "descriptor" is this stream (`StreamOutput`)."""
        return self._peer if name == "peername" else self if name == "socket" else default

    def fileno(self) -> Stream:
        """See `get_extra_info`."""
        return self

    def getsockname(self) -> Address:
        """See `socket.socket`: never the peer's, as every machine has its own."""
        return "here", 0

    def getpeername(self) -> Address:
        """See `socket.socket`."""
        return "there", 0

    def setsockopt(self, _level: int, option: int, _value: bytes) -> None:
        """See `socket.socket`: what is set is that the end is a reset."""
        assert option == socket.SO_LINGER
        self._resets = True

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._is_closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send."""
        if not self._is_closed:
            network = self._network
            if self.asks and network.loses(data, self.life, self.other.life):
                self.be_late()
                network.lost(data, self, self._late_until)
            self.send_on(self.other.arrive, bytes(data))

    def send_on(self, what: Callable[..., None], *arguments: Any) -> None:
        """Have something happen at the other side, behind all that was sent before."""
        self._next_at = max(self._loop.time() + self._network.latency(), self._next_at + STEP_S)
        self._loop.call_at(self._next_at, self._come, what, arguments, context=NOBODY)

    def _come(self, what: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        other = self.other
        if self._network.is_parted(self.life.place, other.life.place):
            self._network.wait(self, what, arguments)
        elif self._loop.time() < self._late_until:
            self._next_at = max(self._late_until, self._next_at + STEP_S)
            self._loop.call_at(self._next_at, self._come, what, arguments, context=NOBODY)
        elif not other.life.is_dead:
            self._loop.call_soon(what, *arguments, context=other.context)
        elif other.life.place in self._network.dark:
            self.is_unheard = True
        else:
            self._loop.call_soon(self.reset, context=self.context)

    def be_late(self) -> None:
        """Have what is on its way arrive some time later; what is sent after it stays behind it."""
        late_s = self._network.late_s * (0.5 + self._network.rng.random() / 2)
        self._late_until = self._next_at = max(self._next_at, self._loop.time() + late_s)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._is_reading = True
        if self._unread:
            self._loop.call_soon(self._read_on, context=self.context)

    def close(self) -> None:
        """Close as `abort` does: what was written is on its way."""
        self.abort()

    def abort(self) -> None:
        """End the connection, for both sides."""
        if not self._is_closed:
            if self._resets and not self._network.arrives_all_the_same(self.life, self.other.life):
                self._network.forget(self)
            self.send_on(self.other.reset)
            self._end()

    # What comes

    def arrive(self, data: bytes) -> None:
        """Bytes have come."""
        self._unread.append(data)
        self._read_on()

    def _read_on(self) -> None:
        while self._unread and self._is_reading and not self._is_closed:
            data = memoryview(self._unread.pop(0))
            while data and not self._is_closed:
                buffer = self.protocol.get_buffer(len(data))
                count = min(len(buffer), len(data))
                assert count, "a protocol without room pauses reading"
                buffer[:count] = data[:count]
                data = data[count:]
                self.protocol.buffer_updated(count)
                if data and not self._is_reading:
                    self._unread.insert(0, bytes(data))
                    break

    def reset(self) -> None:
        """Take the other side's end of the connection."""
        if not self._is_closed:
            self._end()

    def reset_later(self) -> None:
        """Reset after the end of the other side's process; what it sent arrives before."""
        self.other.send_on(self.reset)

    def break_down(self) -> None:
        """Somebody in between has ended it, for both sides; the other one may hear of that late."""
        if self._network.arrives_all_the_same(self.life, self.other.life):
            self.be_late()
            self.send_on(self.other.reset)
            self._loop.call_soon(self.reset, context=self.context)
            return
        for each in (self, self.other):
            if not each.life.is_dead:
                self._loop.call_soon(each.reset, context=each.context)

    def _end(self) -> None:
        self._is_closed = True
        self._network.streams.pop(self.number, None)
        self._loop.call_soon(self.protocol.connection_lost, None, context=self.context)


class StreamOutput:
    """In place of `logd.server.output.Output`: there is room at once for whatever is sent."""

    is_blocked = False

    def __init__(self, loop: asyncio.AbstractEventLoop, **_: object) -> None:
        self._stream: Stream

    def open(self, stream: Stream) -> None:
        """See `Output.open`."""
        self._stream = stream

    def statistics(self) -> dict[str, int]:
        """See `Output.statistics`."""
        return {"bytes": 0, "bytes_max": 0, "file_bytes": 0}

    def send_bytes(self, data: bytes) -> None:
        """See `Output.send_bytes`."""
        self._stream.write(data)

    def send(self, parts: Sequence[bytes | FileSlice]) -> None:
        """See `Output.send`."""
        self._stream.write(b"".join(part if isinstance(part, bytes) else _read(part) for part in parts))

    def close(self) -> None:
        """See `Output.close`."""


def _api_key(request: bytes | bytearray | memoryview) -> int:
    return int.from_bytes(request[4:6], "big")


def _read(part: FileSlice) -> bytes:
    data = os.pread(part.fd, part.length, part.position)
    if len(data) < part.length:
        raise OSError(f"file ends at {part.position + len(data)}, {part.length - len(data)} bytes short")
    return data

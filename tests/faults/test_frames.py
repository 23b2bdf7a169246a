"""Requests that lie: an error reply or a closed connection, at most one log line, nobody else disturbed."""

from __future__ import annotations

import re
import select
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing

import pytest

from kafka_client.wire import decode, decode_response_header, is_flexible, response_class
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from logd.api.table import APIS
from tests.faults.conftest import PEAK_GROWTH_MAX
from tests.support.connections import hang_up
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.sample_requests import sample_frame
from tests.support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("bystander")

ENDS = [pytest.param(key, id=api.module) for key, api in APIS.items()]
LARGEST = 104_857_600
PATIENCE_S = 60.0
"""How long an answer is waited for before the client hangs up: none of these lies has the broker wait."""


def exchange(logd: LogdProcess, sent: bytes) -> tuple[bytes, str]:
    """(what comes back, our address) when ``sent`` is all a client says before it hangs up."""
    with socket.create_connection(("127.0.0.1", logd.port), timeout=60) as sock:
        host, port = sock.getsockname()
        received = bytearray()
        try:
            sock.sendall(sent)
            hang_up(sock)
            while data := sock.recv(65536):
                received += data
        except ConnectionError:
            pass
        return bytes(received), f"{host}:{port}: "


def lines_about(logd: LogdProcess, peer: str, start: int) -> list[str]:
    """Return the log's lines about a connection, from ``start`` on: ports are used again."""
    wait_for(lambda: peer in logd.log[start:])
    return [line for line in logd.log[start:].splitlines() if peer in line]


def reframed(frame: bytes) -> bytes:
    """Return the same request with the length that it has now in front."""
    return struct.pack(">i", len(frame) - 4) + frame[4:]


def lies(frame: bytes, flexible: bool) -> Iterator[bytes]:
    """Yield the request with a huge length at every place where a length might be, in a correct frame."""
    huge = [b"\xff\xff\xff\xff\x07", b"\xff\x7f"] if flexible else [b"\x7f\xff\xff\xff", b"\x7f\xff"]
    for position in range(12, len(frame)):
        for lie in huge:
            yield reframed(frame[:position] + lie + frame[position + (1 if flexible else len(lie)) :])


class Liar:
    """Sends one damaged request after the other, on one connection until the broker closes it."""

    def __init__(self, logd: LogdProcess, key: int, version: int) -> None:
        self._logd = logd
        self._key = key
        self._version = version
        self._client: RawClient | None = None
        self.answered = 0
        self.closed: Counter[str] = Counter()
        """By our address, how often the broker closed the connection; the system may give a port again."""
        self.unanswered: Counter[str] = Counter()
        """The same, how often we hung up and had no answer."""

    def say(self, sent: bytes) -> None:
        """AssertionError unless it is answered by a response of its kind, refused, or not answered at all."""
        if self._client is None:
            self._client = RawClient(self._logd.port)
            self._peer = "{}:{}: ".format(*self._client.socket.getsockname())
        try:
            self._client.send(sent)
            if not select.select((self._client.socket,), (), (), PATIENCE_S)[0]:
                return self._hang_up()
            frame = self._client.receive_frame()
        except ConnectionError:
            frame = None
        if frame is not None:
            self._take(frame)
        else:
            self.closed[self._peer] += 1
            self.close()
        return None

    def _take(self, frame: bytes) -> None:
        assert len(frame) < 10_000
        correlation_id, start = decode_response_header(self._key, self._version, frame)
        assert correlation_id == 7
        decode(response_class(self._key), self._version, frame, start)
        self.answered += 1

    def _hang_up(self) -> None:
        assert self._client is not None
        hang_up(self._client.socket)
        if (frame := self._client.receive_frame()) is not None:
            self._take(frame)
        else:
            self.unanswered[self._peer] += 1
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None


@deep
@pytest.mark.parametrize("key", ENDS)
def test_lying_lengths(logd: LogdProcess, key: int) -> None:
    api = APIS[key]
    for version in (api.serves_from, api.last):
        before = len(logd.log)
        frame = sample_frame(key, version)
        with closing(Liar(logd, key, version)) as liar:
            liar.say(frame)
            assert liar.answered == 1, "what is no lie"
            for lie in lies(frame, flexible=is_flexible(key, version)):
                liar.say(lie)
        assert not liar.unanswered, "the broker hangs"
        assert liar.closed, "no lie was found out"
        wait_for(lambda liar=liar, before=before: log_lines_of(logd, liar.closed, before) >= liar.closed)
        lines = log_lines_of(logd, liar.closed, before)
        assert lines <= liar.closed, "one line for each connection closed"


def log_lines_of(logd: LogdProcess, peers: Iterable[str], start: int) -> Counter[str]:
    """Return how many lines the log has of each peer, from ``start`` on."""
    lines = Counter(match[0] for match in re.finditer(r"\d+\.\d+\.\d+\.\d+:\d+: ", logd.log[start:]))
    return Counter({peer: lines[peer] for peer in peers})


@deep
@pytest.mark.parametrize("key", ENDS)
def test_requests_cut_off(logd: LogdProcess, key: int) -> None:
    """Requests are cut off in a frame of their own length, which is refused, and in one that never ends."""
    for version in (APIS[key].serves_from, APIS[key].last):
        frame = sample_frame(key, version)
        for size in range(4, len(frame), 3):
            for sent in (reframed(frame[:size]), frame[:size]):
                received, _ = exchange(logd, sent)
                assert received == b"", f"version {version}, {size} bytes of it"


@pytest.mark.parametrize("size", [-1, -(2**31), LARGEST + 1, 2**31 - 1])
def test_lengths_out_of_bounds(logd: LogdProcess, size: int) -> None:
    before = len(logd.log)
    received, peer = exchange(logd, struct.pack(">i", size) + b"x" * 100)
    assert received == b""
    (line,) = lines_about(logd, peer, before)
    assert f"announced a request of {size} bytes; socket.request.max.bytes" in line


@deep
@pytest.mark.parametrize("peak_growth_max", [3 * LARGEST + PEAK_GROWTH_MAX])
def test_the_largest_frame_allowed_is_read_and_not_kept(logd: LogdProcess) -> None:
    """100 MB of nothing that begins like a request of an API there is; it may be in memory thrice."""
    head = struct.pack(">hhih", 3, 9, 7, -1)
    with RawClient(logd.port) as client:
        client.send(struct.pack(">i", LARGEST) + head)
        piece = bytes(1 << 20)
        left = LARGEST - len(head)
        while left:
            client.send(piece[:left])
            left -= len(piece[:left])
        assert client.receive_frame() is not None or client.is_closed_by_peer()


@pytest.mark.parametrize(("key", "version"), [(9999, 0), (-7, 3), (61, 0), (3, 14), (0, 2), (1, 19)])
def test_what_is_not_served(logd: LogdProcess, key: int, version: int) -> None:
    before = len(logd.log)
    received, peer = exchange(
        logd, reframed(bytes(4) + struct.pack(">hhih", key, version, 7, -1) + bytes(20))
    )
    assert received == b""
    assert len(lines_about(logd, peer, before)) == 1


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_api_versions_is_answered_whatever_the_version(logd: LogdProcess, version: int) -> None:
    with RawClient(logd.port) as client:
        client.send(reframed(bytes(4) + struct.pack(">hhih", 18, version, 7, -1) + b"\xff\x00garbage"))
        answer = client.receive(18, 0)
        assert answer.error_code == 35
        assert {api.api_key for api in answer.api_keys} == set(APIS)
        assert client.request(ApiVersionsRequest(), 0).error_code == 0


def test_good_and_bad_requests_in_one_packet(logd: LogdProcess) -> None:
    good = sample_frame(18, 3)
    before = len(logd.log)
    received, peer = exchange(logd, good * 3 + reframed(good[:20]) + good)
    assert received.count(struct.pack(">i", 7)) >= 3
    assert len(lines_about(logd, peer, before)) == 1

"""Tests of a connection's output: bytes and pieces of files leave in order, in as few sends as possible."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from kafka_client.records.slice import FileSlice
from logd.server.output import FLUSH_AT, SMALL_BYTES, Output, Part

CONTENT = bytes(range(256)) * 2048


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "segment"
    path.write_bytes(CONTENT)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def fail(*_: object) -> NoReturn:
    raise AssertionError("not to be called")


def sent(parts: list[list[Part]], *, copy: bool = False) -> bytes:
    """Return the bytes that arrive when the responses are sent one after the other."""

    async def run() -> bytes:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        expected = sum(
            part.length if isinstance(part, FileSlice) else len(part) for one in parts for part in one
        )
        loop, received = asyncio.get_running_loop(), bytearray()
        output = Output(loop, copy=copy, drained=lambda: None, failed=fail)
        with ours, theirs:
            output.open(ours.fileno())
            try:
                for answer in parts:
                    output.send(list(answer))
                async with asyncio.timeout(100):
                    while len(received) < expected:
                        received += await loop.sock_recv(theirs, 1 << 20)
            finally:
                output.close()
        return bytes(received)

    return asyncio.run(run())


@pytest.mark.parametrize("size", [1, 100, SMALL_BYTES - 6, SMALL_BYTES - 5, SMALL_BYTES, 300_000])
@pytest.mark.parametrize("copy", [True, False])
def test_pieces_of_every_size_in_order(file: int, size: int, copy: bool) -> None:
    answer: list[Part] = [b"head", FileSlice(file, 5, size), b"tail", FileSlice(file, 0, 2)]

    assert sent([answer, answer], copy=copy) == 2 * (b"head" + CONTENT[5 : 5 + size] + b"tail" + CONTENT[:2])


def test_small_ones_behind_what_waits_keep_their_place(file: int) -> None:
    large: list[Part] = [b"a", FileSlice(file, 0, len(CONTENT))]

    assert (
        sent([large, [b"b", FileSlice(file, 7, 3)], [b"c"]]) == b"a" + CONTENT + b"b" + CONTENT[7:10] + b"c"
    )


def test_a_small_answer_is_one_send(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sendfile", fail)

    assert sent([[b"head", FileSlice(file, 5, 10)]]) == b"head" + CONTENT[5:15]


@pytest.mark.parametrize("size", [100, SMALL_BYTES])
def test_a_file_that_ends_too_soon(file: int, size: int) -> None:
    with pytest.raises(OSError, match="short of what was promised"):
        sent([[b"head", FileSlice(file, len(CONTENT) - 10, size)]])


def test_many_small_pieces_of_a_large_answer_leave_together(
    file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small pieces of a large response leave in few sends. A response for 1,000 partitions took a send and a
    sendfile for each of them.
    """
    calls = 0
    send = socket.socket.send

    class Counting(socket.socket):
        def send(self, *arguments: object) -> int:
            nonlocal calls
            calls += 1
            return send(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", Counting)
    monkeypatch.setattr(os, "sendfile", fail)
    pieces: list[Part] = [
        part for index in range(1000) for part in (b"%3d" % index, FileSlice(file, index, 100))
    ]
    expected = b"".join(b"%3d" % index + CONTENT[index : index + 100] for index in range(1000))

    assert sent([pieces]) == expected
    assert calls < 20


def test_large_pieces_among_small_ones_go_by_themselves(file: int) -> None:
    pieces: list[Part] = []
    for index in range(50):
        pieces += [
            b"%3d" % index,
            FileSlice(file, index, 10),
            b"-",
            FileSlice(file, index, 9_000 + 500 * index),
        ]
    expected = b"".join(
        b"%3d" % index + CONTENT[index : index + 10] + b"-" + CONTENT[index : index + 9_000 + 500 * index]
        for index in range(50)
    )

    assert sent([pieces, pieces]) == 2 * expected


@pytest.mark.parametrize("copy", [True, False])
async def test_what_waits_is_told_until_the_client_reads_it(file: int, copy: bool) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop, drained = asyncio.get_running_loop(), asyncio.Event()
    output = Output(loop, copy=copy, drained=drained.set, failed=fail)
    total, received = 0, 0
    with ours, theirs:
        output.open(ours.fileno())
        assert output.statistics() == {"bytes": 0, "bytes_max": FLUSH_AT, "file_bytes": 0}
        while not output.is_blocked:
            output.send([b"head", FileSlice(file, 0, len(CONTENT))])
            total += 4 + len(CONTENT)
        assert 0 < output.statistics()["file_bytes"] <= len(CONTENT)
        output.send_bytes(CONTENT)
        total += len(CONTENT)
        before = output.statistics()
        assert before["bytes"] >= len(CONTENT)
        while received < total:
            received += len(await loop.sock_recv(theirs, 1 << 16))
            now = output.statistics()
            assert sum(now[name] for name in ("bytes", "file_bytes")) <= total - received
            assert now["file_bytes"] <= before["file_bytes"]
        await drained.wait()
        assert output.statistics() == {"bytes": 0, "bytes_max": FLUSH_AT, "file_bytes": 0}
        output.close()


async def test_a_closed_one_holds_nothing(file: int) -> None:
    ours, theirs = socket.socketpair()
    output = Output(asyncio.get_running_loop(), copy=False, drained=fail, failed=fail)
    with ours, theirs:
        output.open(ours.fileno())
        while not output.is_blocked:
            output.send_bytes(CONTENT)
        assert output.statistics()["bytes"] > 0
        output.close()
        assert output.statistics()["bytes"] == 0

"""Hosts as network namespaces lose packets as they are told to, and leave nothing behind."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.hosts import ENVIRONMENT, Hosts
from tests.support.waiting import SECONDS, wait_for

SILENCE_S = 0.3


class Line(NamedTuple):
    """Both ends of a connection from host 1 to host 2."""

    one: socket.socket
    two: socket.socket


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts([1, 2]) as hosts:
        yield hosts


@pytest.fixture
def line(hosts: Hosts) -> Iterator[Line]:
    with ExitStack() as stack:
        server = stack.enter_context(hosts.within(2, lambda: socket.create_server((hosts.address(2), 0))))
        address = server.getsockname()
        one = stack.enter_context(hosts.within(1, lambda: socket.create_connection(address, SECONDS)))
        two = stack.enter_context(server.accept()[0])
        yield Line(one, two)
        hosts.heal()


def comes(sender: socket.socket, receiver: socket.socket, seconds: float) -> bool:
    """Return True if a packet that is sent now arrives in time."""
    sender.send(b"x")
    receiver.settimeout(seconds)
    try:
        return receiver.recv(100) != b""
    except TimeoutError:
        return False


def test_one_direction_is_silent(hosts: Hosts, line: Line) -> None:
    hosts.silence((1, 2))
    assert comes(line.two, line.one, SECONDS)
    assert not comes(line.one, line.two, SILENCE_S)
    assert hosts.lost() > 0
    hosts.heal()
    line.two.settimeout(SECONDS)
    assert line.two.recv(100)


@pytest.mark.parametrize("how", ["unplug", "take_down"])
def test_one_is_away(hosts: Hosts, line: Line, how: str) -> None:
    getattr(hosts, how)(2)
    assert not comes(line.one, line.two, SILENCE_S)
    hosts.heal()
    assert comes(line.one, line.two, SECONDS)


def test_packets_are_lost_and_what_is_sent_comes(hosts: Hosts, line: Line) -> None:
    hosts.worsen(10)
    for _ in range(10):
        assert comes(line.one, line.two, SECONDS)


def test_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="in the midst"), Hosts([1, 2]) as hosts:
        pids = [int(hosts.inside(end)[1].split("/")[2]) for end in (1, 2)]
        assert hosts.interface in interfaces()
        raise RuntimeError("in the midst")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    wait_for(lambda: hosts.interface not in interfaces())


def interfaces() -> str:
    """Return the interfaces of the test's own host, as `ip link` lists them."""
    return subprocess.run(
        ["ip", "link"], capture_output=True, encoding="utf-8", check=True, env=ENVIRONMENT
    ).stdout

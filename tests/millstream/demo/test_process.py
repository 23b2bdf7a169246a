from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from millstream.demo.ports import free_port
from millstream.demo.process import RESTARTS_MAX, Part, PartFailed
from tests.support.waiting import wait_for


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


def test_a_killed_part_comes_back(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, int, list[tuple[str, int]]]:
        restarts: list[tuple[str, int]] = []
        came_back = asyncio.Event()
        part = Part(
            "sleeper",
            shell("echo up; exec sleep 60"),
            tmp_path / "log",
            on_line=lambda line: came_back.set() if restarts else None,
            on_restart=lambda name, status: restarts.append((name, status)),
        )
        await part.start()
        await part.ready
        first = part.pid
        os.kill(first, signal.SIGKILL)
        await asyncio.wait_for(came_back.wait(), 60)
        second = part.pid
        await part.stop()
        return first, second, restarts

    first, second, restarts = asyncio.run(scenario())

    assert first != second
    assert restarts == [("sleeper", -signal.SIGKILL)]
    assert (tmp_path / "log").read_text() == "up\nup\n"


def test_a_part_that_is_killed_stays_away_until_it_may_come_back(tmp_path: Path) -> None:
    async def scenario() -> tuple[bool, list[int]]:
        restarts: list[int] = []
        came_back = asyncio.Event()
        part = Part(
            "sleeper",
            shell("echo up; exec sleep 60"),
            tmp_path / "log",
            on_line=lambda line: came_back.set() if restarts else None,
            on_restart=lambda name, status: restarts.append(status),
        )
        await part.start()
        await part.ready
        part.kill()
        await asyncio.to_thread(wait_for, lambda: not Path(f"/proc/{part.pid}").exists())
        was_away = not restarts
        part.start_again()
        await asyncio.wait_for(came_back.wait(), 60)
        part.kill()
        await part.stop()
        return was_away, restarts

    assert asyncio.run(scenario()) == (True, [-signal.SIGKILL])


def test_a_part_that_cannot_run_is_given_up_with_its_log_named(tmp_path: Path) -> None:
    async def scenario() -> int:
        part = Part("broken", shell("echo no >&2; exit 3"), tmp_path / "log")
        await part.start()
        with pytest.raises(PartFailed, match=str(tmp_path / "log")):
            await asyncio.wait_for(part.ready, 60)
        with pytest.raises(PartFailed):
            part.check()
        await part.stop()
        return part.restarts

    assert asyncio.run(scenario()) == RESTARTS_MAX + 1


def test_a_part_that_ends_by_itself_is_done(tmp_path: Path) -> None:
    async def scenario() -> bool:
        part = Part("short", shell("echo done"), tmp_path / "log")
        await part.start()
        await part.ready
        await part.stop()
        return part.is_done

    assert asyncio.run(scenario())


def test_a_busy_port_is_avoided() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        assert free_port(port) != port

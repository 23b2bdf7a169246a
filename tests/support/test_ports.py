"""Processes that run tests at the same time have ports of their own."""

from __future__ import annotations

import subprocess
import sys

from tests.support.ports import free_port

PORTS = 200


def test_processes_share_no_ports() -> None:
    code = f"from tests.support.ports import free_port; print(*(free_port() for _ in range({PORTS})))"
    other = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    ours = {free_port() for _ in range(PORTS)}
    assert not ours & {int(port) for ports in other for port in ports}

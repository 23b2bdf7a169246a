"""Programs of ours in Go and JavaScript: fetched is what they need, and they are compiled, below `build`.

Without Go, Node and npm, or without their packages, the tests are skipped. A program that does not compile is
a failure.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

INTEROP = Path(__file__).parent.parent / "interop"
NODE = INTEROP / "node"
BUILT = INTEROP.parent.parent / "build" / "interop"
FETCH_SECONDS = 180
RUN_SECONDS = 150
PROBE_SECONDS = FETCH_SECONDS + RUN_SECONDS + 30
"""How long a test of a probe may take, which may be the first to fetch and compile it."""


def need(*programs: str) -> None:
    """Skip the test unless all of these are installed."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed")


def fetch(command: list[str], folder: Path, **environment: str) -> None:
    """Fetch packages; skip the test with the tool's own words where that is not possible."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command[:2])} took longer than {FETCH_SECONDS} s")
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:2])}: {(done.stderr.strip() or 'failed')[-300:]}")


def build(command: list[str], folder: Path, **environment: str) -> None:
    """Compile a program of ours whose packages are there; AssertionError with what the compiler says."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=FETCH_SECONDS,
    )
    assert done.returncode == 0, done.stderr


def go_program(name: str, module: str, package: str = ".") -> Path:
    """Compile a program of one of the modules in tests/interop as `name`, and return its path."""
    need("go")
    program, folder = BUILT / name, INTEROP / module
    local = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    with alone(BUILT):
        fetch(["go", "mod", "download"], folder, **local)
        build(["go", "build", "-buildvcs=false", "-o", str(program), package], folder, **local)
    return program


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a folder, so that one process at a time builds or fetches there.

    Later ones leave what is up to date.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def seen_by(command: list[str | Path], **environment: str) -> Any:
    """Run a probe and return what it prints. Raises AssertionError with its error output."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def node_modules() -> Path:
    """Install the packages and return their folder. One process at a time installs; others wait."""
    need("node", "npm")
    package, folder = NODE / "package.json", BUILT / "node"
    installed = folder / "installed.json"
    with alone(folder):
        if not installed.exists() or installed.read_bytes() != package.read_bytes():
            shutil.copy(package, folder)
            options = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
            fetch(["npm", "install", *options], folder)
            shutil.copy(package, installed)
    return folder / "node_modules"

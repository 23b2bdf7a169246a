"""A broker for all tests of foreign clients; tests that stop or damage a broker start their own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.clients.base import LIBRARIES, Client, load
from tests.support.logd_process import LogdProcess
from tests.support.other_languages import go_program, node_modules

_numbers = itertools.count()


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a broker; use ``new_name`` for topics and groups."""
    settings = {"group.min.session.timeout.ms": 500}
    with LogdProcess(tmp_path_factory.mktemp("interop"), settings) as process:
        yield process
    assert "Traceback" not in process.log


@pytest.fixture(scope="session", autouse=True)
def _aiokafka_loop() -> Iterator[None]:
    yield
    if (aio := sys.modules.get("tests.interop.clients.aio")) is not None:
        aio.stop()


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses."""
    return lambda prefix="topic": f"{prefix}-{next(_numbers)}"


@pytest.fixture(params=LIBRARIES)
def client(request: pytest.FixtureRequest) -> Client:
    """Return the client of each library in turn."""
    return load(request.param)


@pytest.fixture(scope="session")
def franz_go() -> Path:
    """Return the path of the compiled program."""
    return go_program("franz-go", "go")


@pytest.fixture(scope="session")
def sarama() -> Path:
    """Return the path of the compiled program."""
    return go_program("sarama", "sarama")


@pytest.fixture(scope="session")
def installed() -> Path:
    """Return the folder of node's installed packages."""
    return node_modules()

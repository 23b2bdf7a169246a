"""The broker the client is tried against: logd, or any other by MILLSTREAM_TEST_BOOTSTRAP=host:port."""

from __future__ import annotations

import asyncio
import inspect
import os
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support.shared_logd import logd

__all__ = ["logd"]

HERE = Path(__file__).parent


@pytest.fixture
def bootstrap(request: pytest.FixtureRequest) -> str:
    address = os.environ.get("MILLSTREAM_TEST_BOOTSTRAP")
    return address or str(request.getfixturevalue("logd").bootstrap)


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses, nor an earlier run against a broker that stays."""

    def make(prefix: str) -> str:
        return f"client-{prefix}-{uuid.uuid4().hex[:12]}"

    return make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have every async test here check that it leaves no task behind."""
    for item in items:
        is_here = isinstance(item, pytest.Function) and item.path.is_relative_to(HERE)
        if is_here and inspect.iscoroutinefunction(item.obj):
            item.add_marker(pytest.mark.usefixtures("no_task_left"))


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Fail the test if a task that it began is not done at its end."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"tasks left behind: {left}"

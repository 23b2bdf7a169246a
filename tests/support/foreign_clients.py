"""kafka-python and aiokafka leave sockets of broken connections to the garbage collector.

It may find them in the midst of any later test, which would be blamed. So it looks for them at the end of
each module that uses these clients, and there nobody minds.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

INTEROP = Path(__file__).parent.parent / "interop"
"""Where fixtures bring the clients along."""
IMPORTS = re.compile(
    r'^\s*(import|from) (aiokafka|kafka|faust)\b|importorskip\("(aiokafka|kafka|faust)"', re.MULTILINE
)


@functools.cache
def used_in(path: Path) -> bool:
    """Return True if a module of tests uses a foreign client."""
    return INTEROP in path.parents or IMPORTS.search(path.read_text(encoding="utf-8")) is not None


def forgive(items: list[pytest.Item]) -> None:
    """Have sockets that are found unclosed not fail the tests of modules that use such clients."""
    for item in items:
        if used_in(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))

"""The umask of daemons."""

from __future__ import annotations

import os

import pytest

from kafka_client.private_files import hide_from_others


@pytest.mark.parametrize(("before", "after"), [(0o022, 0o027), (0o077, 0o077), (0o000, 0o027)])
def test_the_umask_only_gets_stricter(before: int, after: int) -> None:
    own = os.umask(before)
    try:
        hide_from_others()
    finally:
        changed = os.umask(own)
    assert changed == after

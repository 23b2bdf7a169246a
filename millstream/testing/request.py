"""A request that a test's broker has received."""

from __future__ import annotations

from typing import NamedTuple


class Request(NamedTuple):
    """A request without its contents; `at_ms` is the time of the broker's clock."""

    at_ms: int
    client_id: str
    api: str
    version: int

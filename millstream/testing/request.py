"""A request that a test's broker has received, as tests are told of it."""

from __future__ import annotations

from typing import NamedTuple


class Request(NamedTuple):
    """One request, without its contents; `at_ms` is the broker's clock."""

    at_ms: int
    client_id: str
    api: str
    version: int

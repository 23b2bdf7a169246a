"""The report of a broker, which a failed test prints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from millstream.testing.errors import BrokerError
from millstream.testing.host import Host

REQUESTS_TOLD = 20
LOG_LINES = 10


def report(host: Host) -> str:
    """Return the ends of topics and the last requests; for a broker that has ended, its last output."""
    try:
        return "\n".join([*_ends(host.ask("ends")), "", *requests_told(host.ask("requests"))])
    except BrokerError as error:
        return "\n".join([f"the broker cannot be asked: {error}", *host.log.splitlines()[-LOG_LINES:]])


def _ends(ends: Sequence[Sequence[Any]]) -> list[str]:
    if not ends:
        return ["no topics"]
    lines = ["partition: first offset to end (last stable offset where it is another)"]
    for topic, partition, first, end, stable in ends:
        lines.append(f"  {topic}-{partition}: {ends_told(first, end, stable)}")
    return lines


def ends_told(first: int, end: int, stable: int) -> str:
    """Return a text with a partition's first offset, end and last stable offset."""
    return f"{first} to {end}" + (f" ({stable})" if stable != end else "")


def requests_told(requests: Sequence[Sequence[Any]]) -> list[str]:
    """Return lines with the last of these requests."""
    last_requests = requests[-REQUESTS_TOLD:]
    if not last_requests:
        return ["no requests"]
    return ["last requests:"] + [
        f"  {datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S.%f} {api} v{version} of {client_id or '?'}"
        for at_ms, client_id, api, version in last_requests
    ]

"""The page about metrics: its program serves them to Prometheus, and every section is read by tests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafka_client.metrics.metrics import Metrics
from tests.docs.pages import ROOT, blocks
from tests.support.depth import deep
from tests.support.documented_metrics import PAGE, documented


async def test_its_program_serves_metrics() -> None:
    (block,) = blocks(PAGE, "python")
    program: dict[str, Any] = {}
    exec(compile(block.text, block.place, "exec"), program)
    registry = Metrics()
    registry.add("kafka.producer", "producer-metrics", lambda: {"record-send-total": 3}, client_id="c")
    async with await program["serve_metrics"](registry, 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    assert head.startswith(b"HTTP/1.1 200")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b'kafka_producer_producer_metrics_record_send_total{client_id="c"} 3.0\n' in body


@deep
@pytest.mark.parametrize("type", sorted({type for _, type in documented()}))
def test_each_section_is_held_against_a_registry(type: str) -> None:
    checked = [path for path in _tests() if f'"{type}"' in path.read_text(encoding="utf-8")]
    assert checked, f"no test calls check_documented with {type}"


def _tests() -> list[Path]:
    return [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if "check_documented(" in path.read_text(encoding="utf-8") and path != Path(__file__)
    ]

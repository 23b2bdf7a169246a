"""The cache of Metadata responses: how often one is encoded, and that no response is outdated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka_client.wire import decode_response_header, encode_request
from kafka_client.wire.compile import decode
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from logd.api.dispatch.dispatch import serve
from logd.api.handlers import metadata
from logd.api.request.context import RequestContext
from logd.broker.fetching.response_cache import ResponseCache
from logd.config.listeners import Endpoint
from tests.logd.broker.fetch_bench import Bench, bench

__all__ = ["bench"]

API_KEY = 3


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of topics, in order, that Metadata described without the cache."""
    names: list[str] = []
    describe = metadata._described

    def note(topic: Any, context: Any, operations: int) -> Any:
        names.append(topic.name)
        return describe(topic, context, operations)

    monkeypatch.setattr(metadata, "_described", note)
    return names


def frame(bench: Bench, *names: str, version: int = 12, correlation_id: int = 7, **context: Any) -> bytes:
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    sent = encode_request(request, version, correlation_id, context.pop("client_id", "test"))[4:]
    answer = serve(memoryview(sent), 0, len(sent), RequestContext(bench.broker, **context))
    if isinstance(answer, Coroutine):
        answer = bench.runner.run(answer)
    return answer if isinstance(answer, bytes) else b"".join(answer)  # type: ignore[arg-type]


def ask(bench: Bench, *names: str, version: int = 12, **more: Any) -> MetadataResponse:
    answer = frame(bench, *names, version=version, **more)
    assert int.from_bytes(answer[:4]) == len(answer) - 4
    return decode(MetadataResponse, version, answer, decode_response_header(API_KEY, version, answer, 4)[1])


def test_the_same_request_is_built_once(bench: Bench, built: list[str]) -> None:
    """Equal requests share one encoded response.

    Each was encoded again: milliseconds of the event loop with thousands of partitions.
    """
    bench.create("t", 3)
    answers = [frame(bench, correlation_id=number, client_id=f"c{number}") for number in range(5)]
    assert built == ["t"]
    assert [int.from_bytes(answer[4:8]) for answer in answers] == list(range(5))
    assert len({answer[8:] for answer in answers}) == 1
    assert frame(bench, "t")[8:] == frame(bench, "t")[8:]
    assert built == ["t", "t"], "other topics are another answer"


def test_versions_and_listeners_have_their_own(bench: Bench, built: list[str]) -> None:
    bench.create("t")
    for version in (1, 8, 9, 12, 13):
        assert [topic.name for topic in ask(bench, version=version).topics] == ["t"]
    other = Endpoint("INSIDE", "10.0.0.1", 19092)
    assert [(one.host, one.port) for one in ask(bench, endpoint=other).brokers] == [("10.0.0.1", 19092)]
    assert [(one.host, one.port) for one in ask(bench).brokers] == [("127.0.0.1", 9092)]
    assert len(built) == 6


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda bench: bench.create("u"), {"t": [0, 0], "u": [0]}),
        (lambda bench: bench.runner.run(bench.broker.catalog.grow("t", 3)), {"t": [0, 0, 0]}),
        (lambda bench: bench.runner.run(bench.broker.delete_topic(bench.broker.catalog.find("t"))), {}),
        (lambda bench: fail(bench), {"t": [5, 5]}),
    ],
    ids=["created", "grown", "deleted", "offline"],
)
def test_a_change_is_told_at_once(
    bench: Bench, change: Callable[[Bench], None], expected: dict[str, list[int]]
) -> None:
    """Changes show at once. `expected` has error codes by topic and partition; 5 is LEADER_NOT_AVAILABLE."""
    bench.create("t", 2)
    assert len(ask(bench).topics) == 1
    before = ask(bench, "t", "u")
    assert [topic.error_code for topic in before.topics] == [0, 3]
    change(bench)
    after = ask(bench)
    assert {topic.name: [p.error_code for p in topic.partitions] for topic in after.topics} == expected
    assert [topic.error_code for topic in ask(bench, "t", "u").topics] == [
        0 if "t" in expected else 3,
        0 if "u" in expected else 3,
    ]


def fail(bench: Bench) -> None:
    """Let the only log directory fail."""

    async def go() -> None:
        bench.broker.directories[0]._health.fail("test", OSError(5, "Input/output error"))
        await asyncio.sleep(0)

    bench.runner.run(go())


def test_a_topic_made_again_has_another_id(bench: Bench) -> None:
    bench.create("t")
    first = ask(bench, "t").topics[0].topic_id
    bench.runner.run(bench.broker.delete_topic(bench.broker.catalog.find("t")))
    bench.create("t")
    assert ask(bench, "t").topics[0].topic_id not in (first, bytes(16))


def test_what_nobody_asks_for_any_more_makes_room() -> None:
    answers = ResponseCache(bytes_max=100)
    for key in "abc":
        assert answers.find(key, 1) is None
        answers.keep(key, b"x" * 29, 1)
    assert answers.find("a", 1) is not None
    answers.keep("d", b"x" * 29, 1)
    assert [key for key in "abcd" if answers.find(key, 1)] == ["a", "c", "d"]
    answers.keep("e", b"x" * 100, 1)
    assert answers.find("e", 1) is None, "larger than all there is room for"
    assert answers.statistics() == {"answers": 3, "bytes": 90, "bytes_max": 100}
    assert answers.find("a", 2) is None
    assert answers.statistics() == {"answers": 0, "bytes": 0, "bytes_max": 100}

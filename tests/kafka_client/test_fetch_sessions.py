"""Fetch sessions from the client's side (KIP-227), against a broker that keeps them to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client import BatchFetcher, Client
from kafka_client.errors import ErrorCode, LogTruncated
from kafka_client.wire import ApiKey
from tests.kafka_client.fake_broker import CUT
from tests.kafka_client.session_broker import SessionBroker, read, tp, with_sessions
from tests.support.depth import deep
from tests.support.waiting import until

BY_NAME_AND_BY_ID = pytest.mark.parametrize("fetch", [(4, 12), (4, 17)], ids=["by name", "by topic id"])


@BY_NAME_AND_BY_ID
def test_requests_name_what_changed_only(fetch: tuple[int, int]) -> None:
    """Incremental requests of a hundred partitions name only the one whose offset changed."""

    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(p): 0 for p in range(100)})
            await until(lambda: sessions.incremental)
            (opened,) = sessions.full
            assert len(opened.fetch_offsets) == 100
            for number in range(20):
                sessions.append(42, b"%d" % number)
                assert await read(fetcher, 1) == [(42, number, b"%d" % number)]
            assert all(set(request.fetch_offsets) <= {42} for request in sessions.incremental)
            assert all(not request.forgotten for request in sessions.incremental)
            assert len(sessions.full) == 1

    with_sessions(case, partitions=100, fetch=fetch)


def test_what_is_added_and_taken_away_is_said_once() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: sessions.incremental)
            fetcher.add(tp(1), 0)
            sessions.append(1, b"one")
            assert await read(fetcher, 1) == [(1, 0, b"one")]
            fetcher.remove(tp(0))
            await until(lambda: any(request.forgotten for request in sessions.requests))
            assert [request.forgotten for request in sessions.incremental if request.forgotten] == [[0]]
            assert [
                request.fetch_offsets for request in sessions.incremental if 0 in request.fetch_offsets
            ] == []
            sessions.append(1, b"two")
            assert await read(fetcher, 1) == [(1, 1, b"two")]
            assert len(sessions.full) == 1

    with_sessions(case)


def test_a_paused_partition_is_forgotten_and_asked_for_again() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(0): 0, tp(1): 0})
            await until(lambda: sessions.incremental)
            fetcher.pause([tp(0)])
            await until(lambda: any(request.forgotten == [0] for request in sessions.incremental))
            sessions.append(0, b"later")
            sessions.append(1, b"now")
            assert await read(fetcher, 1) == [(1, 0, b"now")]
            fetcher.resume([tp(0)])
            assert await read(fetcher, 1) == [(0, 0, b"later")]
            assert len(sessions.full) == 1

    with_sessions(case)


def test_what_is_as_it_was_is_not_said_again() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(0): 0, tp(1): 0})
            await until(lambda: sessions.incremental)
            fetcher.pause([tp(0)])
            fetcher.resume([tp(0)])
            sessions.append(1, b"a")
            assert await read(fetcher, 1) == [(1, 0, b"a")]
            await until(lambda: sessions.incremental[-1].epoch > 3)
            assert [
                request for request in sessions.incremental if 0 in request.fetch_offsets or request.forgotten
            ] == []

    with_sessions(case)


def test_a_seek_is_said_and_what_was_asked_before_it_is_not_handed_out() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.append(0, *(b"%d" % number for number in range(5)))
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            assert len(await read(fetcher, 5)) == 5
            for offset in (3, 3, 0, 4):
                fetcher.seek(tp(0), offset)
                (first, *_) = await read(fetcher, 5 - offset)
                assert first == (0, offset, b"%d" % offset)
            assert len(sessions.full) == 1

    with_sessions(case)


@deep
@BY_NAME_AND_BY_ID
@pytest.mark.parametrize(
    "failure",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
        CUT,
    ],
    ids=["not found", "epoch", "session topic id", "inconsistent topic id", "unknown topic id", "cut"],
)
def test_a_session_that_is_refused_is_opened_anew_and_no_partition_lost(
    failure: Any, fetch: tuple[int, int]
) -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(p): 0 for p in range(3)})
            await until(lambda: sessions.incremental)
            (session_id,) = sessions.sessions
            sessions.fail_next(failure)
            await until(lambda: len(sessions.full) == 2)
            again = sessions.full[1]
            assert set(again.fetch_offsets) == {0, 1, 2}
            # What the broker may still have of the session is to go.
            assert again.session_id == (0 if failure == ErrorCode.FETCH_SESSION_ID_NOT_FOUND else session_id)
            for p in range(3):
                sessions.append(p, b"%d" % p)
            assert sorted(await read(fetcher, 3)) == [(p, 0, b"%d" % p) for p in range(3)]
            assert len(sessions.full) == 2

    with_sessions(case, fetch=fetch)


def test_a_broker_that_refuses_sessions_again_and_again_is_not_asked_in_a_rush() -> None:
    """After the first refusal a session is opened at once; after refusals of that request, with a pause."""

    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: sessions.incremental)
            metadata = sessions.broker.count(ApiKey.METADATA)
            sessions.fail_next(*[ErrorCode.INVALID_FETCH_SESSION_EPOCH] * 5)
            await until(lambda: not sessions.failures)
            sessions.append(0, b"a")
            assert await read(fetcher, 1) == [(0, 0, b"a")]
            assert sessions.broker.count(ApiKey.METADATA) > metadata, "it went on as after any error"

    with_sessions(case)


def test_an_answer_for_what_was_not_asked_opens_the_session_anew() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: sessions.incremental)
            (session,) = sessions.sessions.values()
            session.offsets[next(iter(session.offsets))[0], 7] = 0
            sessions.append(7, b"nobody asked")
            await until(lambda: len(sessions.full) == 2)
            sessions.append(0, b"a")
            assert await read(fetcher, 1) == [(0, 0, b"a")]
            assert len(sessions.full) == 2

    with_sessions(case)


@pytest.mark.parametrize(
    ("fetch", "keeps"), [((4, 6), True), ((4, 12), False), ((4, 17), False)], ids=["v6", "v12", "v17"]
)
def test_without_sessions_everything_is_said_every_time(fetch: tuple[int, int], keeps: bool) -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(p): 0 for p in range(3)})
            for number in range(5):
                sessions.append(number % 3, b"%d" % number)
                assert await read(fetcher, 1) == [(number % 3, number // 3, b"%d" % number)]
            assert all(len(request.fetch_offsets) == 3 for request in sessions.requests)
            assert all(request.epoch <= 0 for request in sessions.requests)
        assert sessions.closed == []

    with_sessions(case, fetch=fetch, keeps=keeps and fetch[1] >= 7)


def test_sessions_can_be_done_without() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client, fetch_sessions=False) as fetcher:
            fetcher.assign({tp(p): 0 for p in range(3)})
            sessions.append(1, b"a", b"b")
            assert await read(fetcher, 2) == [(1, 0, b"a"), (1, 1, b"b")]
            assert {(request.session_id, request.epoch) for request in sessions.requests} == {(0, -1)}

    with_sessions(case)


def test_sessions_are_closed_with_the_fetcher() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: sessions.incremental)
            (session_id,) = sessions.sessions
        assert sessions.closed == [session_id]
        assert sessions.sessions == {}

    with_sessions(case)


def test_closing_waits_for_no_broker_that_is_gone() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: sessions.incremental)
            await sessions.broker.__aexit__()

    with_sessions(case)


def test_a_topic_made_anew_takes_its_old_self_s_place_in_the_session() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.append(0, b"old")
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(0): 0, tp(1): 0})
            assert await read(fetcher, 1) == [(0, 0, b"old")]
            sessions.topic_id = sessions.broker.topic_ids["t"] = b"another topic id"
            sessions.logs = {0: [b"new", b"newer"], 1: [b"other"]}
            sessions.news()
            records = await read(fetcher, 2)
            assert sorted(records) == [(0, 1, b"newer"), (1, 0, b"other")]
            await until(lambda: not sessions.errors and fetcher.lag(tp(0)) == 0)
            (session,) = sessions.sessions.values()
            assert {topic for topic, _ in session.offsets} == {b"another topic id"}
            assert len(sessions.full) == 1

    with_sessions(case)


def test_a_topic_without_an_id_is_asked_for_by_its_name() -> None:
    """Brokers of a cluster that is being upgraded may serve Fetch 13 and know no topic ids."""

    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.broker.topic_ids["t"] = bytes(16)
        sessions.append(0, b"a")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            assert await read(fetcher, 1) == [(0, 0, b"a")]
            assert {request.version for request in sessions.requests} == {12}

    with_sessions(case)


@pytest.mark.parametrize("code", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE])
def test_a_partition_in_trouble_leaves_the_session_for_the_time_of_its_backoff(code: ErrorCode) -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(0): 0, tp(1): 0})
            await until(lambda: sessions.incremental)
            sessions.errors[0] = code
            sessions.news()
            await until(lambda: sum(request.forgotten == [0] for request in sessions.incremental) > 1)
            del sessions.errors[0]
            sessions.append(0, b"a")
            assert await read(fetcher, 1) == [(0, 0, b"a")]
            assert len(sessions.full) == 1

    with_sessions(case)


def test_a_truncated_partition_leaves_the_session_until_it_is_sought() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.append(0, b"a", b"b", b"c", b"d")
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(0): 0, tp(1): 0})
            assert len(await read(fetcher, 4)) == 4
            sessions.logs[0] = [b"a", b"b", b"C"]
            sessions.diverging[0] = (0, 2)
            sessions.news()
            with pytest.raises(LogTruncated) as raised:
                await fetcher.fetch()
            error = raised.value
            place = error.topic, error.partition, error.offset, error.diverging_offset, error.diverging_epoch
            assert place == ("t", 0, 4, 2, 0)
            assert (error.start, error.end) == (0, 3)
            await until(lambda: any(request.forgotten == [0] for request in sessions.incremental))
            fetcher.seek(tp(0), error.diverging_offset)
            assert await read(fetcher, 1) == [(0, 2, b"C")]
            assert len(sessions.full) == 1

    with_sessions(case)


def test_lag_is_known_without_records() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.append(0, b"a", b"b", b"c")
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({tp(0): 3, tp(1): 0})
            assert fetcher.lag(tp(0)) is None
            assert fetcher.high_watermark(tp(0)) == -1
            await until(lambda: fetcher.lag(tp(0)) == 0 and fetcher.lag(tp(1)) == 0)
            ends = fetcher.high_watermark, fetcher.last_stable_offset, fetcher.log_start_offset
            assert [end(tp(0)) for end in ends] == [3, 3, 0]
            fetcher.pause([tp(0)])
            await until(lambda: any(request.forgotten == [0] for request in sessions.incremental))
            sessions.append(0, b"d")
            fetcher.resume([tp(0)])
            await until(lambda: fetcher.lag(tp(0)) == 1)
            assert await read(fetcher, 1) == [(0, 3, b"d")]
            assert fetcher.lag(tp(0)) == 0

    with_sessions(case)


def test_ends_are_known_of_a_partition_removed_and_added_again() -> None:
    """Its session goes on, and the broker says how far it reaches no second time."""

    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: fetcher.lag(tp(0)) == 0)
            fetcher.remove(tp(0))
            fetcher.add(tp(0), 0)
            await until(lambda: fetcher.lag(tp(0)) == 0)
            sessions.append(0, b"a")
            assert await read(fetcher, 1) == [(0, 0, b"a")]

    with_sessions(case)


def test_ends_are_known_of_a_partition_added_again_before_the_answer() -> None:
    """Brokers report an end once in a session, even if its position was removed before the answer."""

    async def case(sessions: SessionBroker, client: Client) -> None:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: sessions.incremental and fetcher.lag(tp(0)) == 0)
            sessions.append(0, b"a")
            fetcher.remove(tp(0))
            fetcher.add(tp(0), 1)
            await until(lambda: fetcher.high_watermark(tp(0)) == 1)
            assert fetcher.lag(tp(0)) == 0
            assert len(sessions.full) == 1

    with_sessions(case)


def test_full_buffers_leave_the_session_until_they_are_read() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        value = b"v" * 1000
        sessions.append(0, *[value] * 50)
        settings: dict[str, Any] = {"buffer_max_bytes": 8_000, "max_partition_fetch_bytes": 2_000}
        async with BatchFetcher(client, **settings) as fetcher:
            fetcher.assign({tp(0): 0, tp(1): 0})
            await until(lambda: any(request.forgotten == [0] for request in sessions.incremental))
            assert fetcher.statistics()["buffered_bytes"] < 8_000
            sessions.append(1, b"not kept waiting")
            await until(lambda: fetcher.lag(tp(1)) == 1)
            assert len(await read(fetcher, 51)) == 51
            assert fetcher.statistics()["buffered_bytes"] == 0
            assert len(sessions.full) == 1

    with_sessions(case)

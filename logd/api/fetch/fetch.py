"""Fetch, 4 to 18: batches as they lie in the log, as slices of its files.

The first partition with data gives at least one batch, however small the limits; a position in the middle of
a batch gives the whole batch. Below ``min_bytes`` the request waits up to ``max_wait_ms`` as a delayed
operation of its partitions. Pages that are not in memory are read in by a thread first, while the connection
waits and others are served.

From version 7 on a client may keep a session (KIP-227, see `broker.fetch_session`): it says once what it
wants, and is told only of partitions with news. Partitions are answered in the order asked, as Kafka does:
clients without a session rotate them themselves, in a session those that gave records go to the end. In a
session only those are looked at that are ready, which goes by what was appended: an idle one costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import KafkaError
from kafka_client.wire.fetch import TOPIC_IDS, decode_fetch_request, encode_fetch_response
from logd.api.broker_requests import FETCH, is_from_broker, require_broker
from logd.api.fetch.fetch_read import FetchRead
from logd.broker.fetching.delayed import Delayed, NeedsColdRead
from logd.broker.fetching.fetch_session import CLOSING_EPOCH, NO_SESSION, OPENING_EPOCH

if TYPE_CHECKING:
    from logd.api.request.answer import Answer
    from logd.api.request.context import RequestContext


def serve(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | Delayed[Answer]:
    """Answer at once when there is enough, an error, or nothing to wait for; otherwise wait."""
    request = decode_fetch_request(view, version, pos, end)
    broker = context.broker
    if request.replica_id >= 0 and broker.leading is not None:
        require_broker(FETCH, context)
    session = None
    if request.session_epoch not in (OPENING_EPOCH, CLOSING_EPOCH):
        try:
            session = broker.fetch_sessions.next(
                request, by_topic_ids=version >= TOPIC_IDS, now_ms=broker.loop.time() * 1000
            )
        except KafkaError as error:
            return encode_fetch_response([], version, correlation_id, error_code=error.code)
    else:
        if request.session_id != NO_SESSION:
            broker.fetch_sessions.close(request.session_id)
        if request.replica_id >= 0:
            broker.fetch_sessions.close_of(request.replica_id)
    if context.fetch_bytes_max is not None:
        request = request._replace(max_bytes=min(request.max_bytes, int(context.fetch_bytes_max)))
    read = FetchRead(broker, request, version, correlation_id, session, context.endpoint)
    if broker.authorizer is not None and not (request.replica_id >= 0 and is_from_broker(context)):
        from logd.api.authorization.records import reading

        read.authorize(reading(context))
    if request.replica_id >= 0:
        from logd.api.fetch.follower_fetch import note_follower_offsets, refuse

        if broker.leading is None:
            read.refuse(refuse(request, session))
        else:
            read.refuse(note_follower_offsets(broker, broker.leading, request, version))
    outcome = read(request.max_wait_ms <= 0)
    if outcome is None or isinstance(outcome, NeedsColdRead):
        return Delayed(broker.loop, broker.cold_reads, broker.wakeups, request.max_wait_ms, read, outcome)
    return outcome

"""MirrorMaker 2's offset-syncs records, byte by byte."""

from __future__ import annotations

import pytest

from kafka_client import Identity, TopicPartition
from mirror.offsets import OffsetSync, ProducerPosition, decode_sync, encode_sync

KEY = bytes.fromhex("0007 666c6967687473 00000003")
VALUE = bytes.fromhex("00000000000003e8 0000000000000190")


def test_the_format_is_mirrormakers() -> None:
    sync = OffsetSync(TopicPartition("flights", 3), 1000, 400, 1000, 400)
    assert encode_sync(sync, 5)[:3] == (5, KEY, VALUE)
    assert decode_sync(KEY, VALUE) == sync


def test_what_mirrormaker_has_no_place_for_travels_in_headers() -> None:
    sync = OffsetSync(TopicPartition("flüge", 0), 1, 2, 11, 12, b"\7" * 16, b"\6" * 16)
    sync = sync._replace(producer=ProducerPosition(Identity(5, 2), 7), leader_epoch=3)
    _, key, value, headers = encode_sync(sync, 5)
    assert key is not None
    assert value is not None
    next_pair = bytes(7) + b"\13" + bytes(7) + b"\14"
    assert headers == (
        ("topic-id", b"\7" * 16),
        ("remote-topic-id", b"\6" * 16),
        ("next", next_pair),
        ("producer", bytes(7) + b"\5" + b"\0\2" + b"\0\0\0\7"),
        ("leader-epoch", b"\0\0\0\3"),
    )
    assert decode_sync(key, value, headers) == sync


@pytest.mark.parametrize(("key", "value"), [(b"", VALUE), (KEY[:-1], VALUE), (KEY, VALUE[:-1])])
def test_what_is_no_sync_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match="no offset sync"):
        decode_sync(key, value)

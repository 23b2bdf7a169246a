"""The row of one producer in a snapshot; `snapshot` has the format of the file.

A row in Kafka's format (46 bytes, big-endian) contains the producer's last batch:

    int64 producer id · int16 epoch · int32 last sequence · int64 last offset · int32 offset delta ·
    int64 timestamp · int32 coordinator epoch · int64 first offset of the open transaction, -1 none

It is followed by our addition: the batches before the last, oldest first, 28 bytes each. All of them may have
been in flight when the broker stopped. Without them, a batch that is sent again would look like a gap. Its
producer might then write all of them again under another epoch.

    int32 first sequence · int32 last sequence · int64 last offset · int32 offset delta · int64 timestamp
"""

from __future__ import annotations

import struct
from typing import Final

from kafka_client.records.header import NO_SEQUENCE
from logd.storage.producers.producer import BatchMemo, Producer

ROW: Final = struct.Struct(">qhiqiqiq")
MEMO: Final = struct.Struct(">iiqiq")


def pack_row(producer_id: int, producer: Producer) -> bytes:
    """Return Kafka's row, followed by the batches before the last."""
    batches = producer.batches
    last = batches[-1] if batches else None
    row = ROW.pack(
        producer_id,
        producer.epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else -1,
        last.offset_delta if last else 0,
        producer.timestamp,
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )
    if len(batches) < 2 or batches[-1].last_sequence < 0:  # a coordinator's batches have no sequence
        return row
    return row + b"".join([MEMO.pack(*memo) for memo in batches][:-1])


def unpack_memos(memos: bytes) -> list[BatchMemo]:
    """Return the batches after a row."""
    return [BatchMemo(*memo) for memo in MEMO.iter_unpack(memos)]

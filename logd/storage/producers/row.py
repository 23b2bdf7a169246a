"""One producer in a snapshot, in Kafka's format (46 bytes, big-endian). The file around it: `snapshot`.

int64 producer id · int16 epoch · int32 last sequence · int64 last offset · int32 offset delta ·
int64 timestamp · int32 coordinator epoch · int64 first offset of the open transaction, -1 none
"""

from __future__ import annotations

import struct
from typing import Final

from logd.records.header import NO_SEQUENCE
from logd.storage.producers.producer import Producer

ROW: Final = struct.Struct(">qhiqiqiq")


def pack_row(producer_id: int, producer: Producer) -> bytes:
    """Of each producer's batches only the last is kept."""
    last = producer.batches[-1] if producer.batches else None
    return ROW.pack(
        producer_id,
        producer.epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else -1,
        last.offset_delta if last else 0,
        producer.timestamp,
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )

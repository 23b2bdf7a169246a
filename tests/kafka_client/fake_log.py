"""A partition's log as a broker keeps it for idempotent producers: duplicates known, gaps refused."""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.records import check_crc, decode_records, read_header
from tests.kafka_client.fake_broker import ReceivedRequest

REMEMBERED = 5


class FakeLog:
    """Values appended, in order, and each producer's last batches."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.epochs: dict[int, int] = {}
        self._batches: dict[int, list[tuple[int, int, int]]] = {}

    def append(self, batch: memoryview) -> tuple[int, int]:
        """(error code, base offset), as a broker answers (KIP-98, KIP-360)."""
        header = read_header(batch)
        check_crc(batch, 0, header)
        producer, epoch = header.producer_id, header.producer_epoch
        if producer >= 0:
            last_epoch = self.epochs.get(producer)
            if last_epoch is not None and epoch < last_epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            batches = self._batches.setdefault(producer, [])
            if epoch != last_epoch:
                if last_epoch is not None and header.base_sequence != 0:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                batches.clear()
                self.epochs[producer] = epoch
            for first, last, offset in batches:
                if (first, last) == (header.base_sequence, header.last_sequence):
                    return ErrorCode.NONE, offset
            if batches and header.base_sequence != batches[-1][1] + 1:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            batches.append((header.base_sequence, header.last_sequence, len(self.values)))
            del batches[:-REMEMBERED]
        base = len(self.values)
        self.values += [record[3] for record in decode_records(batch)]
        return ErrorCode.NONE, base


def append_all(logs: dict[int, FakeLog], request: ReceivedRequest) -> bytes:
    """Append a Produce request's batches and answer it."""
    results = []
    for _, partitions in request.message.topics:
        for number, batch in partitions:
            results.append((number, *logs.setdefault(number, FakeLog()).append(batch)))
    return request.produced(*results)

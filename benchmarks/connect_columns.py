"""The files sink without a broker: records per second of CPU from fetched record batches to a file.

    python -m benchmarks.connect_columns [records]

Fetched batches of JSON objects of about 100 B go through the sink task's steps and the bare JSON converter.
The file is Parquet (by columns), JSON lines (by texts) or JSON lines of whole records. The process's CPU time
counts, so that a loaded machine does not matter.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator

from connect.api import SinkTaskContext, TopicPartition
from connect.runtime import WorkerConfig
from connect.runtime.columnar.batch import ColumnarBatch
from connect.runtime.columnar.parts import columnar_parts
from connect.runtime.conversion import Conversion
from connect.runtime.json_batch import JsonSinkBatch
from connect.runtime.sink_rows import SinkRows, bounded
from connect.transforms.chain import TransformChain
from kafka_client import Fetched
from kafka_client.records import Codec, assign_offset, build_batch
from plugins.files.sink import FilesSinkTask

_TP = TopicPartition("t", 0)
_BATCH = 1000
_FETCHED = 20
"""Record batches in one fetch response."""
_PART_RECORDS = 20_000
_PUT_MAX_BYTES = 16 << 20


def main(count: int) -> None:
    """Print the records per second of CPU for each format."""
    fetched = list(_fetched(count))
    for format, content in (("parquet", "value"), ("json", "value"), ("json", "record")):
        seconds = min(_seconds(format, content, fetched) for _ in range(3))
        print(
            f"{format:8} {content:7} {count / seconds:12,.0f} records/s of CPU ({count:,} records of 100 B)"
        )


def _fetched(count: int) -> Iterator[Fetched]:
    for start in range(0, count, _BATCH * _FETCHED):
        data = bytearray()
        end = min(start + _BATCH * _FETCHED, count)
        for first in range(start, end, _BATCH):
            records = [(n, None, _value(n), ()) for n in range(first, min(first + _BATCH, end))]
            batch = bytearray(build_batch(records, codec=Codec.LZ4))
            assign_offset(batch, first, 0)
            data += batch
        yield Fetched(_TP, start, end, memoryview(bytes(data)))


def _value(number: int) -> bytes:
    return b'{"id":%08d,"name":"customer-%06d","city":"%s","price":%d.25,"paid":true,"note":"%s"}' % (
        10_000_000 + number,
        number % 1_000_000,
        (b"Berlin", b"Vienna", b"Zurich")[number % 3],
        number % 1000,
        b"nothing to note",
    )


def _seconds(format: str, content: str, responses: list[Fetched]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        task = FilesSinkTask()
        task.context = SinkTaskContext(connector="c", task_id=0)
        task.start({"path": folder, "format": format, "content": content, "file.records.max": "1000000"})
        task.open([_TP])
        config = {
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            "key.converter": "string",
        }
        worker = WorkerConfig.parse(config | {"offset.storage.file.filename": f"{folder}/offsets"})
        rows = SinkRows(Conversion.configured(worker, {}), TransformChain.configured({}), keeps_raw=False)
        began = time.process_time()
        for fetched in responses:
            if format == "parquet":
                for part in columnar_parts(fetched, _PART_RECORDS, _PUT_MAX_BYTES):
                    task.put_columns(ColumnarBatch(rows, _TP, part).prepared())
            else:
                for whole in fetched.parts(_PART_RECORDS):
                    for piece in bounded(whole, _PUT_MAX_BYTES):
                        task.put_json(JsonSinkBatch(rows, _TP, piece).prepared())
        task.flush({})
        seconds = time.process_time() - began
        task.stop()
    return seconds


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400_000)

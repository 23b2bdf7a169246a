"""Measures Connect's transforms: CPU time per record of a chain of five, with and without schema.

python -m benchmarks.connect_transforms
"""

from __future__ import annotations

import time

from connect.api import SinkRecord
from connect.api import schema as s
from connect.transforms import TransformChain

CONFIG = {
    "transforms": "insert,mask,replace,cast,route",
    "transforms.insert.type": "InsertField$Value",
    "transforms.insert.topic.field": "topic",
    "transforms.insert.offset.field": "offset",
    "transforms.mask.type": "MaskField$Value",
    "transforms.mask.fields": "card",
    "transforms.replace.type": "ReplaceField$Value",
    "transforms.replace.exclude": "note",
    "transforms.replace.renames": "id:order_id",
    "transforms.cast.type": "Cast$Value",
    "transforms.cast.spec": "amount:float64,count:string",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "new-$1",
}
VALUE = {
    "id": 5,
    "card": "4242",
    "note": "text",
    "amount": "12.5",
    "count": 3,
    "a": 1,
    "b": 2,
    "c": 3,
    "d": 4,
}
SCHEMA = s.struct({name: s.string() if isinstance(item, str) else s.int64() for name, item in VALUE.items()})
RECORDS = 1000
SECONDS = 0.7


def measure(chain: TransformChain, records: list[SinkRecord]) -> float:
    """Return the CPU time per record in microseconds: the best of the rounds in `SECONDS`."""
    best = float("inf")
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        start = time.process_time()
        chain.apply(records)
        best = min(best, time.process_time() - start)
    return best / len(records) * 1e6


def main() -> None:
    """Print the times."""
    chain = TransformChain.configured(CONFIG)
    for name, schema in (("without schema", None), ("with schema", SCHEMA)):
        records = [SinkRecord("topic", 0, i, dict(VALUE), value_schema=schema) for i in range(RECORDS)]
        print(f"{name}: {measure(chain, records):.2f} us a record")


if __name__ == "__main__":
    main()

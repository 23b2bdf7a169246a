"""Kafka's own classes write the bytes that ours write, and read what ours read: random values and bytes."""

from __future__ import annotations

import random

from kafka_client import TopicPartition
from mirror.records.checkpoint import Checkpoint, parse_checkpoint
from mirror.records.heartbeat import Heartbeat, parse_heartbeat
from mirror.records.offset_sync import OffsetSync, parse_offset_sync
from tests.support import java

SEED = 31
ALPHABET = "abcXYZ019._- äß漢🚲\x00"
EDGES = (0, 1, -1, 2**31 - 1, -(2**31))
LONG_EDGES = (*EDGES, 2**63 - 1, -(2**63))

Record = OffsetSync | Checkpoint | Heartbeat


def texts(source: random.Random) -> str:
    return "".join(source.choices(ALPHABET, k=source.choice((0, 1, 5, 40))))


def longs(source: random.Random) -> int:
    return source.choice((*LONG_EDGES, source.getrandbits(62), source.getrandbits(20)))


def partitions(source: random.Random) -> TopicPartition:
    return TopicPartition(texts(source), source.choice((*EDGES, source.getrandbits(30))))


def records(source: random.Random) -> Record:
    match source.randrange(3):
        case 0:
            return OffsetSync(partitions(source), longs(source), longs(source))
        case 1:
            tp = partitions(source)
            return Checkpoint(texts(source), tp, longs(source), longs(source), texts(source))
        case _:
            return Heartbeat(texts(source), texts(source), longs(source))


def fields(record: Record) -> str:
    """Return the record's fields as MirrorRecords.java writes them."""
    flat: list[object] = []
    for field in record:
        flat.extend(field if isinstance(field, tuple) else (field,))
    return "\t".join(field.encode().hex() if isinstance(field, str) else str(field) for field in flat)


NAMES = {OffsetSync: "sync", Checkpoint: "checkpoint", Heartbeat: "heartbeat"}
PARSERS = {"sync": parse_offset_sync, "checkpoint": parse_checkpoint, "heartbeat": parse_heartbeat}


def java_answers(questions: list[str]) -> list[str]:
    answers = java.run_program("MirrorRecords", stdin="\n".join(questions)).splitlines()
    assert len(answers) == len(questions)
    return answers


def damaged(source: random.Random, data: bytes) -> bytes:
    """Return the bytes with a few of them cut off, appended or replaced."""
    match source.randrange(4):
        case 0:
            return data[: source.randrange(len(data) + 1)]
        case 1:
            return data + source.randbytes(3)
        case 2 if data:
            at = source.randrange(len(data))
            return data[:at] + bytes((source.getrandbits(8),)) + data[at + 1 :]
        case _:
            return data


@java.needs_jar("connect-mirror")
def test_java_writes_the_same_bytes() -> None:
    source = random.Random(SEED)
    written = [records(source) for _ in range(3000)]
    answers = java_answers([f"{NAMES[type(record)]}\t{fields(record)}" for record in written])
    for record, answer in zip(written, answers, strict=True):
        assert f"{record.record_key.hex()}\t{record.record_value.hex()}" == answer, record


@java.needs_jar("connect-mirror")
def test_java_reads_and_refuses_the_same_bytes() -> None:
    source = random.Random(SEED + 1)
    cases = []
    for _ in range(3000):
        record = records(source)
        key, value = damaged(source, record.record_key), damaged(source, record.record_value)
        cases.append((NAMES[type(record)], key, value))
    answers = java_answers([f"read-{name}\t{key.hex()}\t{value.hex()}" for name, key, value in cases])
    seldom = 0
    for (name, key, value), answer in zip(cases, answers, strict=True):
        try:
            ours = fields(PARSERS[name](key, value))
        except UnicodeDecodeError as e:
            raise AssertionError("bytes that are no UTF-8 are refused as other records are") from e
        except ValueError as e:
            # Java puts U+FFFD where bytes are no UTF-8, and without assertions it reads every version as 0.
            if isinstance(e.__cause__, UnicodeDecodeError) or "of version" in str(e):
                seldom += 1
                continue
            ours = "refused"
        assert ours == answer, (name, key, value)
    assert 0 < seldom < 600
    assert sum(answer == "refused" for answer in answers) > 300

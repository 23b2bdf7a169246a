"""Written by one client, with every codec, and read by all of them: the same records."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_client.records import NewRecord, Record, build_batch, iter_batches
from tests.interop.clients import kcat
from tests.interop.clients.base import CODECS, LIBRARIES, Client, Refused, load
from tests.support.depth import deep, sample
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

RECORDS: list[NewRecord] = [
    (1_700_000_000_000, b"key", b"value", ()),
    (1_700_000_000_001, None, b"no key", ()),
    (1_700_000_000_002, b"no value", None, ()),
    (1_700_000_000_001, b"", b"", ()),
    (1_600_000_000_000, b"earlier", b"than the one before", ()),
    (
        1_700_000_000_004,
        b"headers",
        b"v",
        (("one", b"1"), ("one", b"again"), ("empty", b""), ("\u00e9", b"x")),
    ),
    (1_700_000_000_005, b"words", b"the same words again and again " * 300, ()),
    *[(1_700_000_001_000 + number, b"%d" % (number % 7), b"number %d" % number, ()) for number in range(300)],
]


def numbered(records: list[NewRecord]) -> list[Record]:
    return [(offset, *record) for offset, record in enumerate(records)]


@sample(9)
@pytest.mark.parametrize("codec", CODECS)
def test_written_by_one_read_by_all(
    logd: LogdProcess, client: Client, codec: str, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("round-trip"))
    client.produce(logd.bootstrap, topic, RECORDS, codec)
    for reader in map(load, LIBRARIES):
        assert reader.consume(logd.bootstrap, topic, len(RECORDS)) == numbered(RECORDS), reader.name
    if kcat.COMMAND is not None:
        assert kcat.consume(logd.bootstrap, topic, len(RECORDS)) == numbered(RECORDS)
    with RawClient(logd.port) as raw:
        codecs = {header.codec for _, header in iter_batches(raw.fetch(topic).records)}
    # A batch that would not get smaller is left as it is by librdkafka.
    assert CODECS.index(codec) in codecs <= {0, CODECS.index(codec)}


@deep
@pytest.mark.parametrize("codec", CODECS)
def test_binary_is_kept(
    logd: LogdProcess, client: Client, codec: str, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("binary"))
    every_byte = bytes(range(256))
    sent: list[NewRecord] = [(1, every_byte, every_byte * 40, (("h", every_byte),))]
    client.produce(logd.bootstrap, topic, sent, codec)
    assert client.consume(logd.bootstrap, topic, 1) == numbered(sent)


def test_what_not_all_of_them_write(
    logd: LogdProcess, client: Client, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("nulls"))
    sent: list[NewRecord] = [(1, None, None, ()), (2, b"k", b"v", (("none", None), ("some", b"x")))]
    with RawClient(logd.port) as raw:
        assert raw.produce(topic, sent).error_code == 0
    assert client.consume(logd.bootstrap, topic, 2) == numbered(sent)


@deep
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_largest_record(
    logd: LogdProcess, client: Client, codec: str, new_name: Callable[[str], str]
) -> None:
    """Batches of exactly max.message.bytes are accepted, one byte more is not; both exceed one read."""
    limit = 3_000_000
    topic = create_topic(logd, new_name("large"), {"max.message.bytes": str(limit)})
    if codec == "none":
        overhead = len(build_batch([(1, None, b"x" * limit, ())])) - limit
        client.produce(logd.bootstrap, topic, [(1, None, b"x" * (limit - overhead), ())])
        with pytest.raises(Refused) as refused:
            client.produce(logd.bootstrap, topic, [(1, None, b"x" * (limit - overhead + 1), ())])
        assert refused.value.code == 10  # MESSAGE_TOO_LARGE
    else:  # only what travels counts
        client.produce(logd.bootstrap, topic, [(1, None, b"x" * (limit + 1_000_000), ())], codec)
    client.produce(logd.bootstrap, topic, [(2, b"after", b"it", ())])
    (_, _, _, large, _), after = client.consume(logd.bootstrap, topic, 2)
    assert large is not None and len(large) >= limit - 100 and not large.strip(b"x")
    assert after == (1, 2, b"after", b"it", ())


def test_the_default_limit(logd: LogdProcess, client: Client, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("large"))
    client.produce(logd.bootstrap, topic, [(1, None, b"x" * 1_048_500, ())])
    with pytest.raises(Refused) as refused:
        client.produce(logd.bootstrap, topic, [(1, None, b"x" * 1_048_600, ())])
    assert refused.value.code == 10


def test_the_broker_stamps_where_the_topic_says_so(
    logd: LogdProcess, client: Client, new_name: Callable[[str], str]
) -> None:
    topic = create_topic(logd, new_name("stamped"), {"message.timestamp.type": "LogAppendTime"})
    client.produce(logd.bootstrap, topic, [(1, b"k", b"%d" % number, ()) for number in range(3)], "gzip")
    stamps = {record[1] for record in client.consume(logd.bootstrap, topic, 3)}
    assert all(stamp > 1_700_000_000_000 for stamp in stamps)


@deep
def test_offsets_for_times(logd: LogdProcess, client: Client, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("times"))
    client.produce(logd.bootstrap, topic, [(1000 * number, None, b"v", ()) for number in range(1, 50)])
    offsets = [
        client.offset_for_time(logd.bootstrap, topic, time) for time in (1, 1000, 1001, 49_000, 49_001)
    ]
    assert offsets == [0, 0, 1, 48, None]


def test_a_topic_is_made_by_writing_to_it(
    logd: LogdProcess, client: Client, new_name: Callable[[str], str]
) -> None:
    topic = new_name("made-by-writing")
    client.produce(logd.bootstrap, topic, RECORDS[:1])
    assert client.consume(logd.bootstrap, topic, 1) == numbered(RECORDS[:1])


@pytest.mark.skipif(kcat.COMMAND is None, reason="kcat is not installed (apt-get install kcat)")
class TestKcat:
    @pytest.mark.parametrize("codec", CODECS)
    def test_reads_and_writes(self, logd: LogdProcess, codec: str, new_name: Callable[[str], str]) -> None:
        topic = create_topic(logd, new_name("kcat"))
        pairs = [("", ""), ("key", ""), ("", "value")] + [
            (f"k{number}", "word " * 90) for number in range(50)
        ]
        kcat.produce(logd.bootstrap, topic, pairs, codec, [("from", "kcat")])
        expected = [
            (offset, key.encode() or None, value.encode() or None, (("from", b"kcat"),))
            for offset, (key, value) in enumerate(pairs)
        ]
        for name in LIBRARIES:
            read = load(name).consume(logd.bootstrap, topic, len(pairs))
            assert [(offset, *rest) for offset, _, *rest in read] == expected, name
        assert kcat.consume(logd.bootstrap, topic, len(pairs)) == read

    def test_metadata_and_offsets(self, logd: LogdProcess, new_name: Callable[[str], str]) -> None:
        topic = create_topic(logd, new_name("kcat"), partitions=3)
        with RawClient(logd.port) as raw:
            for stamp in (1000, 2000, 3000):
                raw.produce(topic, [(stamp, None, b"v", ())], partition=1)
        assert f'topic "{topic}" with 3 partitions' in kcat.kcat(logd.bootstrap, "-L", "-t", topic)
        assert f"{topic} [1] offset 1\n" in kcat.kcat(logd.bootstrap, "-Q", "-t", f"{topic}:1:1500")

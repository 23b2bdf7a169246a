"""Apache Kafka's console tools, kcat and ours read what each of the others wrote, on either broker.

Kafka's tools all run in one virtual machine: one takes two seconds to start.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.millstream.kafka_tools.players import JavaTools
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.java import needs_javac
from tests.support.logd_process import LogdProcess
from tests.support.millstream_command import run
from tests.support.topics import create_topic

SECONDS = 200.0
RECORDS = [("k1", "v1", "h1", "x"), ("k2", "", "h2", "y"), ("k1", "ä b", "h3", "z")]
"""Key, value, a header's name and value."""
WHOLE = b"".join(f"{h}:{x}\t{k}\t{v}\n".encode() for k, v, h, x in RECORDS)
"""The records in the format of Kafka's console producer and consumer."""

Broker = LogdProcess | ApacheKafka
Kafkas = Callable[..., bytes]

pytestmark = [
    deep,
    needs_javac,
    pytest.mark.skipif(not shutil.which("kcat"), reason="there is no kcat"),
]


@pytest.fixture(scope="module", params=["logd", "Apache Kafka"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LogdProcess | ApacheKafka]:
    kind = LogdProcess if request.param == "logd" else ApacheKafka
    with kind(tmp_path_factory.mktemp("broker")) as process:
        yield process


@pytest.fixture(scope="module")
def java_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    with JavaTools(tmp_path_factory.mktemp("java")) as tools:
        yield tools


@pytest.fixture
def kafkas(broker: Broker, java_tools: JavaTools) -> Kafkas:
    """Runs one of Kafka's tools; what it prints."""

    def run(tool: str, *arguments: str, stdin: bytes = b"") -> bytes:
        done = java_tools.run([tool, "--bootstrap-server", broker.bootstrap, *arguments], stdin.decode())
        assert done.status == 0, done.stderr
        return done.stdout.encode()

    return run


def ours(broker: Broker, *arguments: object, stdin: bytes = b"") -> bytes:
    done = run(*arguments, "-b", broker.bootstrap, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout


def kcat(broker: Broker, *arguments: str, stdin: bytes = b"") -> bytes:
    line = ["kcat", "-q", "-b", broker.bootstrap, *arguments]
    return subprocess.run(line, input=stdin, stdout=subprocess.PIPE, timeout=SECONDS, check=True).stdout


def properties(flag: str, values: Sequence[str]) -> list[str]:
    return [part for each in values for part in (flag, each)]


def write_by_java(kafkas: Kafkas, topic: str) -> None:
    parse = properties("--reader-property", ["parse.headers=true", "parse.key=true"])
    kafkas("kafka-console-producer", "--topic", topic, *parse, stdin=WHOLE)


def write_by_kcat(broker: Broker, topic: str) -> None:
    for key, value, name, header in RECORDS:
        kcat(
            broker,
            "-P",
            "-t",
            topic,
            "-K",
            "\t",
            "-H",
            f"{name}={header}",
            stdin=f"{key}\t{value}\n".encode(),
        )


def write_by_ours(broker: Broker, topic: str) -> None:
    ours(broker, "produce", topic, "--headers-separator", r"\t", "-K", r"\t", stdin=WHOLE)


@pytest.mark.parametrize("who", ["java", "kcat", "ours"])
def test_whoever_wrote_it_all_read_the_same(broker: Broker, kafkas: Kafkas, who: str) -> None:
    topic = create_topic(broker, f"written-by-{who}")
    if who == "java":
        write_by_java(kafkas, topic)
    elif who == "kcat":
        write_by_kcat(broker, topic)
    else:
        write_by_ours(broker, topic)
    form = r"%t %p %o %k %K %s %S %h\n"
    lines = ours(broker, "consume", topic, "-e", "-f", form)
    assert lines.decode().splitlines()[2] == f"{topic} 0 2 k1 2 ä b 4 h3=z"
    assert kcat(broker, "-C", "-t", topic, "-e", "-f", form) == lines
    show = properties("--formatter-property", ["print.headers=true", "print.key=true"])
    end = ("--from-beginning", "--max-messages", "3", "--timeout-ms", "60000")
    assert kafkas("kafka-console-consumer", "--topic", topic, *show, *end) == WHOLE
    assert [
        tuple(json.loads(row)[name] for name in ("key", "value")) for row in json_lines(broker, topic)
    ] == [(key, value) for key, value, *_ in RECORDS]


def json_lines(broker: Broker, topic: str) -> list[bytes]:
    return ours(broker, "consume", topic, "-e", "-o", "jsonl").splitlines()


def test_json_of_kcat_says_what_ours_says(broker: Broker) -> None:
    topic = create_topic(broker, "json")
    write_by_ours(broker, topic)
    theirs = [json.loads(line) for line in kcat(broker, "-C", "-J", "-t", topic, "-e").splitlines()]
    for row, other in zip(map(json.loads, json_lines(broker, topic)), theirs, strict=True):
        assert (row["key"], row["value"], row["offset"]) == (other["key"], other["payload"], other["offset"])
        assert row["timestamp"] == other["ts"]
        assert [each for pair in row["headers"] for each in pair] == other["headers"]


@pytest.mark.parametrize(
    ("name", "deserializer", "pack"),
    [
        ("int", "Integer", "i$"),
        ("long", "Long", "q$"),
        ("short", "Short", "h$"),
    ],
)
def test_numbers_are_those_of_kafka_s_serializers(
    broker: Broker, kafkas: Kafkas, name: str, deserializer: str, pack: str
) -> None:
    topic = create_topic(broker, f"of-{name}")
    ours(broker, "produce", topic, "--value-type", name, stdin=b"-1\n300\n")
    assert ours(broker, "consume", topic, "-e", "--value-type", name) == b"-1\n300\n"
    assert kcat(broker, "-C", "-t", topic, "-e", "-s", pack) == b"-1\n300\n"
    printed = kafkas(
        "kafka-console-consumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", "60000"),
        *("--value-deserializer", f"org.apache.kafka.common.serialization.{deserializer}Deserializer"),
    )
    assert printed == b"-1\n300\n"


@pytest.mark.parametrize(("name", "deserializer"), [("float", "Float"), ("double", "Double")])
def test_fractions_are_those_of_kafka_s_serializers(
    broker: Broker, kafkas: Kafkas, name: str, deserializer: str
) -> None:
    topic = create_topic(broker, f"of-{name}")
    ours(broker, "produce", topic, "--value-type", name, stdin=b"0.5\n-1e10\n")
    printed = kafkas(
        "kafka-console-consumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "2", "--timeout-ms", "60000"),
        *("--value-deserializer", f"org.apache.kafka.common.serialization.{deserializer}Deserializer"),
    )
    ours_printed = ours(broker, "consume", topic, "-e", "--value-type", name)
    assert (
        [float(line) for line in printed.split()]
        == [float(line) for line in ours_printed.split()]
        == [0.5, -1e10]
    )


def test_tombstones_and_nulls(broker: Broker, kafkas: Kafkas) -> None:
    topic = create_topic(broker, "nulls")
    lines = b"k\tNULL\nNULL\tv\n"
    ours(broker, "produce", topic, "-K", r"\t", "-Z", "NULL", stdin=lines)
    form = r"%k\t%s\n"
    assert ours(broker, "consume", topic, "-e", "-f", form, "--null-marker", "NULL") == lines
    assert kcat(broker, "-C", "-Z", "-t", topic, "-e", "-f", form) == lines
    marker = properties("--reader-property", ["parse.key=true", "null.marker=NULL"])
    kafkas("kafka-console-producer", "--topic", topic, *marker, stdin=lines)
    assert ours(broker, "consume", topic, "-e", "-f", form, "--null-marker", "NULL") == 2 * lines


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(broker: Broker, codec: str) -> None:
    topic = create_topic(broker, f"packed-{codec}")
    lines = b"the same again\n" * 1000
    ours(broker, "produce", topic, "-z", codec, stdin=lines)
    assert kcat(broker, "-C", "-t", topic, "-e") == lines
    kcat(broker, "-P", "-t", topic, "-z", codec, stdin=lines)
    assert ours(broker, "consume", topic, "-e") == 2 * lines


def test_a_transaction_is_read_whole_by_all(broker: Broker) -> None:
    topic = create_topic(broker, "whole")
    ours(broker, "produce", topic, "--transactional-id", "exchange", stdin=b"1\n2\n")
    assert (
        run(
            "produce",
            topic,
            "--transactional-id",
            "exchange",
            "--value-type",
            "int",
            "-b",
            broker.bootstrap,
            stdin=b"1\nx\n",
        ).returncode
        == 1
    )
    committed = ("--isolation-level", "read_committed")
    assert ours(broker, "consume", topic, "-e", *committed) == b"1\n2\n"
    assert kcat(broker, "-C", "-t", topic, "-e", "-X", "isolation.level=read_committed") == b"1\n2\n"


@pytest.mark.parametrize(
    ("topic", "formatter"),
    [
        ("__consumer_offsets", "OffsetsMessageFormatter"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter"),
        ("__transaction_state", "TransactionLogMessageFormatter"),
    ],
)
def test_kafka_s_own_records_as_its_formatters_print_them(
    broker: Broker, kafkas: Kafkas, topic: str, formatter: str
) -> None:
    data = create_topic(broker, f"for-{formatter}")
    ours(broker, "produce", data, "--transactional-id", f"of-{formatter}", stdin=b"1\n2\n")
    ours(broker, "consume", data, "-g", f"of-{formatter}", "--from-beginning", "-c", 1)
    lines = [
        line
        for line in ours(broker, "consume", topic, "-e", "--formatter", formatter).splitlines()
        if f'"of-{formatter}"'.encode() in line
    ]
    assert lines
    partition, count = partition_of(broker, topic, f"of-{formatter}")
    theirs = kafkas(
        "kafka-console-consumer",
        *("--topic", topic, "--partition", partition, "--offset", "earliest"),
        *("--max-messages", str(count), "--timeout-ms", "60000"),
        *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}"),
    )
    # Kafka writes no line ends between them.
    printed_lines = theirs.replace(b"}{", b"}\n{").splitlines()
    assert [line for line in printed_lines if f'"of-{formatter}"'.encode() in line] == lines


def partition_of(broker: Broker, topic: str, name: str) -> tuple[str, int]:
    """Return the partition of a group or transactional id, and its current number of records.

    Kafka's consumer would wait for more records. With a partition it uses no group, whose commits would add
    records.
    """
    keys = ours(broker, "consume", topic, "-e", "-f", r"%p %k\n").split(b"\n")
    (partition,) = {line.split(b" ")[0] for line in keys if name.encode() in line}
    each = ours(broker, "consume", topic, "-e", "-f", r"%p\n").split(b"\n")
    return partition.decode(), each.count(partition)

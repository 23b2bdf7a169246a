"""`millstream produce` and `millstream consume` against a broker, one through the other."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from millstream.commands.consume.cli import app as consuming
from millstream.commands.produce.cli import app as producing
from millstream.terminal.status import Status
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.millstream_command import SECONDS, run, started
from tests.support.topics import create_topic

LESS_THAN_DELIVERY_TIMEOUT_SECONDS = 80.0


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


@pytest.fixture
def topic(logd: LogdProcess, request: pytest.FixtureRequest) -> str:
    return create_topic(logd, re.sub(r"[^\w.]", "-", request.node.name))


def consume(logd: LogdProcess, *arguments: object) -> Result:
    return CliRunner().invoke(consuming, [*map(str, arguments), "-b", logd.bootstrap])


def produce(logd: LogdProcess, tmp_path: Path, text: bytes, *arguments: object) -> Result:
    file = tmp_path / "input"
    file.write_bytes(text)
    topic, *options = map(str, arguments)
    return CliRunner().invoke(producing, [topic, str(file), *options, "-b", logd.bootstrap])


def printed(logd: LogdProcess, *arguments: object) -> bytes:
    result = consume(logd, *arguments, "-e")
    assert result.exit_code == Status.OK, result.stderr
    assert result.stderr == ""
    return result.stdout_bytes


@deep
def test_lines_through_a_pipe(logd: LogdProcess, topic: str) -> None:
    """Send what is read at once, whatever the number of lines."""
    lines = b"".join(b"line %d\n" % n for n in range(50_000))
    sent = run("produce", topic, "-b", logd.bootstrap, stdin=lines + b"the last has no end")
    assert (sent.returncode, sent.stdout, sent.stderr) == (Status.OK, b"", b"")
    received = run("consume", topic, "-e", "-b", logd.bootstrap)
    assert (received.returncode, received.stderr) == (Status.OK, b"")
    assert received.stdout == lines + b"the last has no end\n"


def test_keys_headers_tombstones_and_where_records_went(logd: LogdProcess, tmp_path: Path) -> None:
    topic = create_topic(logd, "spread", partitions=3)
    options = ("-K", ":", "-Z", "NULL", "-H", "h=1", "-z", "zstd")
    assert produce(logd, tmp_path, b"a:1\nb:2\na:NULL\nNULL:3\n", topic, *options).exit_code == Status.OK
    rows = [json.loads(line) for line in printed(logd, topic, "-o", "jsonl").splitlines()]
    assert {(row["key"], row["value"]) for row in rows} == {(None, "3"), ("a", "1"), ("a", None), ("b", "2")}
    assert {tuple(map(tuple, row["headers"])) for row in rows} == {(("h", "1"),)}
    assert len({row["partition"] for row in rows if row["key"] == "a"}) == 1
    assert produce(logd, tmp_path, b"x\ny\n", topic, "-p", "2").exit_code == Status.OK
    assert printed(logd, topic, "-p", 2, "-n", 2, "-f", "%p %v,") == b"2 x,2 y,"


def test_json_lines_come_back_as_they_were(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    lines = (
        b'{"value": "v", "key": "k", "headers": [["a", "1"], ["a", null]], "timestamp": 1700000000000}\n'
        b'{"value": null, "key": null}\n{"value": "\\u0000\\n"}\n'
    )
    assert produce(logd, tmp_path, lines, topic, "-i", "json").exit_code == Status.OK
    once = printed(logd, topic, "-o", "json")
    again = create_topic(logd, "again")
    assert produce(logd, tmp_path, once, again, "-i", "json").exit_code == Status.OK
    assert printed(logd, again, "-o", "jsonl") == once.replace(topic.encode(), b"again")
    first = json.loads(once.splitlines()[0])
    assert (first["timestamp"], first["headers"]) == (1700000000000, [["a", "1"], ["a", None]])


def test_files_are_records(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_bytes(b"line\nin " + file.name.encode())
    arguments = [topic, *map(str, files), "-i", "files", "-k", "K", "-b", logd.bootstrap]
    assert CliRunner().invoke(producing, arguments).exit_code == Status.OK
    assert printed(logd, topic, "-f", "%k=%v;") == b"K=line\nin a;K=line\nin b;"


def test_types(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    types = ("--key-type", "int", "--value-type", "double")
    assert produce(logd, tmp_path, b"1|0.5\n-2|1e300\n", topic, "-K", "|", *types).exit_code == Status.OK
    assert printed(logd, topic, *types, "-f", r"%k %v\n") == b"1 0.5\n-2 1e+300\n"
    assert printed(logd, topic, *types, "-k", "-2") == b"1e+300\n"
    assert printed(logd, topic, "--key-type", "hex", "--value-type", "base64", "-o", "plain", "-n", 2).split(
        b"\t"
    )[-1]


def test_an_input_that_does_not_parse(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    result = produce(logd, tmp_path, b"1\n2\nx\n4\ny\n", topic, "--value-type", "long")
    assert result.exit_code == Status.PARTLY
    assert f"line 3 of {tmp_path / 'input'}: the value: 'x' is not a whole number" in result.stderr
    assert "Sent before it: 2 records" in result.stderr
    skipping = produce(logd, tmp_path, b"x\n3\ny\n", topic, "--value-type", "long", "--skip-errors")
    assert skipping.exit_code == Status.PARTLY
    assert "line 1 of" in skipping.stderr and "line 3 of" in skipping.stderr
    assert "2 lines left out, see above; 1 record sent" in skipping.stderr
    assert printed(logd, topic, "--value-type", "long") == b"1\n2\n3\n"
    nothing = produce(logd, tmp_path, b"x\n", topic, "--value-type", "long")
    assert (nothing.exit_code, "Sent" in nothing.stderr) == (Status.FAILED, False)
    large = produce(logd, tmp_path, b"a\n" + b"x" * 1_100_000 + b"\n", topic)
    assert large.exit_code == Status.PARTLY
    assert "line 2 of" in large.stderr and "max.request.size" in large.stderr


def test_what_cannot_be_decoded(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    produce(logd, tmp_path, b"1234\nabc\n5678\n", topic)
    result = consume(logd, topic, "-e", "--value-type", "int")
    assert result.exit_code == Status.FAILED
    assert result.stdout == "825373492\n"
    assert (
        f"{topic}-0 at offset 1: the value: 3 bytes are not int, which has 4. Printed before it: 1 record."
        in result.stderr
    )
    skipping = consume(logd, topic, "-e", "--value-type", "int", "--skip-errors")
    assert (skipping.exit_code, len(skipping.stdout.splitlines())) == (Status.PARTLY, 2)


def test_where_reading_begins_and_ends(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    lines = b"".join(b'{"value": "%d", "timestamp": %d}\n' % (n, 1000 + n) for n in range(100))
    produce(logd, tmp_path, lines, topic, "-i", "json")
    assert printed(logd, topic, "-n", 2) == b"98\n99\n"
    assert printed(logd, topic, "--offset", 97, "--max-messages", 2) == b"97\n98\n"
    assert printed(logd, topic, "--since", 1096) == b"96\n97\n98\n99\n"
    assert consume(logd, topic, "--since", 1002, "--until", 1005).stdout == "2\n3\n4\n"
    assert printed(logd, topic, "--offset", "latest") == b""
    assert printed(logd, topic, "--key-pattern", ".") == b""
    assert consume(logd, topic, "--from-beginning", "-c", 1).stdout == "0\n"
    assert consume(logd, topic, "--timeout-ms", 300).stdout == ""
    beyond = consume(logd, topic, "--offset", 1000)
    assert beyond.exit_code == Status.FAILED
    assert "1000" in beyond.stderr


@deep
def test_topics_by_name_and_by_pattern(logd: LogdProcess, tmp_path: Path) -> None:
    for name in ("one-a", "one-b", "two"):
        create_topic(logd, name)
        produce(logd, tmp_path, name.encode(), name)
    assert sorted(printed(logd, "one-a", "two").splitlines()) == [b"one-a", b"two"]
    assert sorted(printed(logd, "--include", "one-.").splitlines()) == [b"one-a", b"one-b"]
    none = consume(logd, "--include", "one")
    assert (none.exit_code, "no" in none.stderr) == (Status.NOT_FOUND, True)
    assert consume(logd, "three", "-e").exit_code == Status.NOT_FOUND
    missing = consume(logd, "two", "-p", 4, "-e")
    assert (missing.exit_code, "two has 1" in missing.stderr) == (Status.NOT_FOUND, True)


def test_a_group_goes_on_where_it_was(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    produce(logd, tmp_path, b"1\n2\n3\n", topic)
    assert consume(logd, topic, "-g", "g", "--from-beginning", "-c", 2).stdout == "1\n2\n"
    assert printed(logd, topic, "-g", "g") == b"3\n"
    assert printed(logd, topic, "-g", "g") == b""
    produce(logd, tmp_path, b"4\n", topic)
    assert printed(logd, "--include", re.escape(topic), "-g", "g") == b"4\n"


def test_a_transaction_is_all_or_nothing(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    options = ("--transactional-id", "mine")
    assert produce(logd, tmp_path, b"1\n2\n", topic, "--value-type", "int", *options).exit_code == Status.OK
    failed = produce(logd, tmp_path, b"3\nx\n", topic, "--value-type", "int", *options)
    assert failed.exit_code == Status.FAILED
    assert "the transaction was aborted: nothing was sent" in failed.stderr
    committed = ("--value-type", "int", "--isolation-level", "read_committed")
    assert printed(logd, topic, *committed) == b"1\n2\n"
    config = tmp_path / "client.properties"
    config.write_text("isolation.level=read_committed\n")
    assert printed(logd, topic, "--value-type", "int", "--command-config", config) == b"1\n2\n"
    state = ("--formatter", "TransactionLogMessageFormatter")
    rows = [json.loads(line) for line in printed(logd, "__transaction_state", *state).splitlines()]
    assert {row["key"]["data"]["transactionalId"] for row in rows} == {"mine"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name topics, or give --include"),
        (("t", "--include", "t"), "not both"),
        (("t", "-g", "g", "--last", "1"), "leave --offset N, --last"),
        (("t", "-f", "%v", "-o", "json"), "-f or -o"),
        (("t", "--formatter", "Nothing"), "OffsetsMessageFormatter"),
        (("t", "-f", "%x"), "there is no field %x"),
        (("t", "--value-type", "avro"), "avro"),
        (("t", "--value-type", "protobuf"), "protobuf"),
    ],
)
def test_command_lines_of_consume_that_do_not_hold_together(
    logd: LogdProcess, arguments: tuple[str, ...], message: str
) -> None:
    result = consume(logd, *arguments)
    assert result.exit_code == Status.USAGE
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-i", "json", "-K", ":"), "for lines"),
        (("-i", "json", "-Z", "x"), "null of its own"),
        (("-D", ""), "cannot be empty"),
        (("-H", "x"), "NAME=VALUE"),
        (("--key-type", "int", "-k", "x"), "--key: 'x' is not"),
    ],
)
def test_command_lines_of_produce_that_do_not_hold_together(
    logd: LogdProcess, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = produce(logd, tmp_path, b"", "t", *arguments)
    assert result.exit_code == Status.USAGE
    assert message in result.stderr


def test_a_file_that_is_not_there(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(producing, [topic, str(tmp_path / "none"), "-b", logd.bootstrap])
    assert result.exit_code == Status.USAGE
    assert "cannot be read" in result.stderr
    assert produce(logd, tmp_path, b"x", "nowhere").exit_code == Status.NOT_FOUND
    assert produce(logd, tmp_path, b"x", topic, "-p", "5").exit_code == Status.NOT_FOUND


@deep
def test_a_reader_that_has_enough(logd: LogdProcess, topic: str, tmp_path: Path) -> None:
    produce(logd, tmp_path, b"a long line, many times\n" * 100_000, topic)
    with started("consume", topic, "-e", "-b", logd.bootstrap) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == b"a long line, many times\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SECONDS) == Status.OK


@deep
def test_ctrl_c_ends_consume_with_the_group_s_offsets_committed(
    logd: LogdProcess, topic: str, tmp_path: Path
) -> None:
    produce(logd, tmp_path, b"1\n2\n", topic)
    options = ("-g", "interrupted", "--from-beginning", "-b", logd.bootstrap)
    with started("consume", topic, *options) as process:
        assert process.stdout and process.stderr
        assert [process.stdout.readline() for _ in range(2)] == [b"1\n", b"2\n"]
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == Status.INTERRUPTED
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert printed(logd, topic, "-g", "interrupted") == b""


@deep
def test_ctrl_c_ends_produce_while_it_waits_for_input(logd: LogdProcess, topic: str) -> None:
    with started("produce", topic, "-b", logd.bootstrap) as process:
        assert process.stdin and process.stderr
        process.stdin.write(b"1\n2\n3")
        process.stdin.flush()
        read = run("consume", topic, "--from-beginning", "-c", 2, "-b", logd.bootstrap)
        assert read.stdout == b"1\n2\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == Status.INTERRUPTED
        assert process.stderr.read() == b"interrupted after 2 records sent\n"


@deep
def test_ctrl_c_ends_produce_while_its_broker_is_away(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        topic = create_topic(logd, "away")
        with started("produce", topic, "-b", logd.bootstrap) as process:
            assert process.stdin and process.stderr
            process.stdin.write(b"1\n")
            process.stdin.flush()
            read = run("consume", topic, "--from-beginning", "-c", 1, "-b", logd.bootstrap)
            assert read.stdout == b"1\n"
            logd.kill()
            process.stdin.write(b"2\n")
            process.stdin.flush()
            process.send_signal(signal.SIGINT)
            # Far less than the delivery timeout of two minutes, for which its records could wait.
            assert process.wait(LESS_THAN_DELIVERY_TIMEOUT_SECONDS) == Status.INTERRUPTED
            assert b"interrupted after 1 record sent" in process.stderr.read()

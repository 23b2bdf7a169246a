"""The files source: formats, times, and going on exactly where it stopped."""

import gzip
import json
import os
import random
import zipfile

import pytest

from connect.api import ConfigError, ConnectError, DataError, schema
from plugins.files import FilesSource, FileStreamSource

FLIGHTS = """year,month,day,carrier,delay,name
2013,1,1,UA,-2,"Newark, NJ"
2013,10,31,AA,NA,"two
lines"
2013,12,5,9E,1.5,
"""


def config(path, **more):
    base = {"file": str(path), "topic": "t", "stop.at.eof": "true"}
    return base | {k.replace("_", "."): str(v) for k, v in more.items()}


@pytest.fixture
def flights(tmp_path):
    path = tmp_path / "flights.csv"
    path.write_text(FLIGHTS)
    return path


def test_csv_with_inferred_types(start, flights):
    run = start(
        FilesSource,
        config(
            flights,
            csv_types="infer",
            csv_null="NA,",
            key_field="carrier",
            timestamp_field="{year}-{month}-{day}",
        ),
    )
    records = run.records()
    assert records[0].value == {
        "year": 2013, "month": 1, "day": 1, "carrier": "UA", "delay": -2, "name": "Newark, NJ"
    }  # fmt: skip
    assert records[1].value["delay"] is None
    assert records[1].value["name"] == "two\nlines"
    assert records[2].value["delay"] == 1.5
    assert records[2].value["name"] is None
    assert [r.key for r in records] == ["UA", "AA", "9E"]
    assert [r.timestamp for r in records] == [1_356_998_400_000, 1_383_177_600_000, 1_386_201_600_000]
    assert records[-1].source_offset.items() >= {"position": len(FLIGHTS), "line": 5}.items()
    assert run.tasks[0].context.is_finished
    run.stop()


def test_csv_as_strings_keeps_every_cell(start, flights):
    records = start(FilesSource, config(flights)).records()
    assert records[1].value["delay"] == "NA"
    assert records[2].value["name"] == ""
    assert records[0].timestamp is None


@pytest.mark.parametrize(
    ("cell", "value"),
    [("007", "007"), ("1_000", "1_000"), (" 1", " 1"), ("-0", 0), ("1e3", 1000.0), ("1.", "1."), ("٣", "٣"),
     ("9" * 30, "9" * 30), ("nan", "nan"), ("0.10", 0.1), ("+1", "+1"), ("", None)],
)  # fmt: skip
def test_only_what_looks_like_a_number_becomes_one(start, tmp_path, cell, value):
    path = tmp_path / "x.csv"
    path.write_text(f"a,b\n{cell},x\n", "utf-8")
    (record,) = start(FilesSource, config(path, csv_types="infer")).records()
    assert record.value["a"] == value
    assert type(record.value["a"]) is type(value)


def test_delimiters_quotes_and_given_names(start, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("1\t'a\tb'\n\n2\tc\n")
    run = start(
        FilesSource, config(path, csv_delimiter="\\t", csv_quote="'", csv_header="false", csv_fields="n,s")
    )
    assert [r.value for r in run.records()] == [{"n": "1", "s": "a\tb"}, {"n": "2", "s": "c"}]


def test_a_row_that_does_not_fit_its_header_is_named(start, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(DataError, match=r"x\.csv, about line 3: 1 cells where the header names 2"):
        start(FilesSource, config(path)).records()


def test_json_lines(start, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"at": "2013-01-01T10:00:00Z", "k": 1}\n\n{"at": 1000, "k": null}')
    records = start(FilesSource, config(path, key_field="k", timestamp_field="at")).records()
    assert [(r.key, r.timestamp) for r in records] == [(1, 1_357_034_400_000), (None, 1000)]
    path.write_text('{"a": 1}\n{"a"\n')
    with pytest.raises(DataError, match="about line 2"):
        start(FilesSource, config(path)).records()


def test_text_and_encodings(start, tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntw\xc3\xb6\n")
    assert [r.value for r in start(FilesSource, config(path)).records()] == ["one", "twö"]
    path.write_bytes(b"tw\xf6\n")
    assert [r.value for r in start(FilesSource, config(path, encoding="latin-1")).records()] == ["twö"]
    with pytest.raises(ConnectError, match=r"x\.log, after line 0"):
        start(FilesSource, config(path)).records()
    path.write_bytes(b"one\ntwo\ntw\xf6\nfour\n")
    for stop in ("true", "false"):
        with pytest.raises(ConnectError, match=r"x\.log, after line 2"):
            start(FilesSource, config(path, stop_at_eof=stop)).records()


@pytest.mark.parametrize(
    ("field", "format", "cell", "ms"),
    [
        ("at", "auto", "2013-01-01", 1_356_998_400_000),
        ("at", "auto", "2013-01-01T01:00:00+01:00", 1_356_998_400_000),
        ("at", "auto", "-5", -5),
        ("at", "epoch_s", "1.5", 1500),
        ("at", "epoch_ms", "7", 7),
        ("at", "%d.%m.%Y", "1.1.2013", 1_356_998_400_000),
    ],
)
def test_times(start, tmp_path, field, format, cell, ms):
    path = tmp_path / "x.csv"
    path.write_text(f"at,b\n{cell},1\n")
    (record,) = start(FilesSource, config(path, timestamp_field=field, timestamp_format=format)).records()
    assert record.timestamp == ms


def test_a_time_that_is_none_is_named(start, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("at,b\nsoon,1\n")
    with pytest.raises(DataError, match="'soon' is no time"):
        start(FilesSource, config(path, timestamp_field="at")).records()
    with pytest.raises(DataError, match="lacks when"):
        start(FilesSource, config(path, timestamp_field="when")).records()


def test_constant_times(start, flights):
    assert {r.timestamp for r in start(FilesSource, config(flights, timestamp_constant=0)).records()} == {0}


def _write(path, text):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside.csv", text)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.csv.zip"])
def test_a_restart_goes_on_with_the_very_next_row(start, tmp_path, name):
    """Rows come exactly once though the source is restarted at the committed offset after every batch."""
    rows = [[str(i), random.Random(i).choice(["x", "a\nb", 'say ""hi""', "é", ""])] for i in range(57)]
    text = "n,s\n" + "".join(f'{n},"{s}"\n' for n, s in rows)
    _write(tmp_path / name, text)
    run = start(FilesSource, config(tmp_path / name, batch_size=5, csv_null="-"))
    read = []
    while not run.tasks[0].context.is_finished:
        read += [[r.value["n"], r.value["s"]] for r in run.poll()]
        run.commit()
        run = run.again()
        if len(read) >= len(rows):
            assert run.records() == []
            break
    run.stop()
    assert read == [[n, s.replace('""', '"')] for n, s in rows]


def test_what_was_not_committed_comes_again(start, flights):
    run = start(FilesSource, config(flights, batch_size=1))
    first, second = run.poll(), run.poll()
    run = run.again()
    assert [r.value for r in run.poll()] == [r.value for r in first]
    run.commit()
    run = run.again()
    assert [r.value for r in run.poll()] == [r.value for r in second]
    run.stop()


def test_a_growing_file_waits_for_whole_rows(start, tmp_path):
    path = tmp_path / "grow.csv"
    run = start(FilesSource, config(path, stop_at_eof="false"))
    assert run.poll() == []  # not there yet
    with path.open("a") as file:

        def add(text: str) -> list[dict[str, str]]:
            file.write(text)
            file.flush()
            return [r.value for r in run.records()]

        assert add("a,") == []
        assert add("b\n1,") == []
        assert add('2\n3,"x') == [{"a": "1", "b": "2"}]
        assert add("\ny") == []
        assert add('"\n') == [{"a": "3", "b": "x\ny"}]
        assert add("5,6\n7,8\n") == [{"a": "5", "b": "6"}, {"a": "7", "b": "8"}]
    assert not run.tasks[0].context.is_finished
    run.commit()
    run = run.again()
    assert run.records() == []
    run.stop()


def test_a_replaced_file_is_read_from_its_head(start, flights):
    run = start(FilesSource, config(flights))
    run.records()
    run.commit()
    flights.write_text("year\n2014\n")
    run = run.again()
    assert [r.value for r in run.records()] == [{"year": "2014"}]
    run.stop()


def test_a_missing_file_and_a_strange_archive(start, tmp_path):
    with pytest.raises(ConnectError, match="does not exist"):
        start(FilesSource, config(tmp_path / "none.csv")).records()
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a", "")
        archive.writestr("b", "")
    with pytest.raises(ConnectError, match="holds 2 files"):
        start(FilesSource, config(tmp_path / "two.zip")).records()
    (tmp_path / "bad.zip").write_bytes(b"PK no")
    with pytest.raises(ConnectError, match="cannot be opened"):
        start(FilesSource, config(tmp_path / "bad.zip")).records()
    whole = gzip.compress(b"a,b\n" + bytes(range(48, 58)) * 2000)
    (tmp_path / "torn.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConnectError, match="torn"):
        start(FilesSource, config(tmp_path / "torn.csv.gz")).records()


def test_patterns_are_shared_out_over_tasks(start, tmp_path):
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text(f"{i}\n")
    settings = {"files": f"{tmp_path}/*.txt", "topic": "t", "stop.at.eof": "true"}
    run = start(FilesSource, settings, max_tasks=2)
    assert [len(json.loads(c["task.files"])) for c in run.task_configs] == [3, 2]
    assert sorted(r.value for r in run.records()) == ["0", "1", "2", "3", "4"]
    run.stop()


@pytest.mark.parametrize(
    "wrong",
    [
        {"file": "a", "files": "b"},
        {},
        {"file": "a", "csv.header": "false"},
        {"file": "a", "csv.delimiter": "ab"},
        {"file": "a", "timestamp.field": "x", "timestamp.constant": "0"},
        {"file": "a", "format": "text", "key.field": "k"},
        {"file": "a", "encoding": "utf-16"},
        {"file": "a", "encoding": "klingon"},
        {"file": "a", "batch.size": "0"},
    ],
)
def test_settings_that_cannot_be(wrong):
    with pytest.raises(ConfigError):
        FilesSource.CONFIG.parse({"topic": "t"} | wrong)


def test_kafkas_file_stream_source_reads_lines(start, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\nhalf")
    run = start(FileStreamSource, {"file": str(path), "topic": "t"})
    records = run.records()
    assert [r.value for r in records] == ["a,b", "1,2"]
    assert [r.value_schema for r in records] == [schema.string()] * 2, "as Kafka's FileStreamSourceTask"
    run.stop()


def test_kafkas_file_stream_source_reads_standard_input_to_its_end(start, monkeypatch):
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "wb", buffering=0) as out:
        monkeypatch.setattr("sys.stdin", stdin)
        run = start(FileStreamSource, {"topic": "t", "batch.size": "2"})
        assert run.poll() == []
        out.write("one\r\ntw\xf6\nth".encode())
        assert [r.value for r in run.poll()] == ["one", "tw\xf6"]
        out.write(b"ree\n\n5\nsix")
        out.close()
        assert [r.value for r in run.records()] == ["three", "", "5", "six"]
        assert run.tasks[0].context.is_finished
        run.stop()


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("9223372036854775807", 9223372036854775807),
        ("-9223372036854775808", -9223372036854775808),
        ("9223372036854775808", "9223372036854775808"),
        ("12345678901234567890", "12345678901234567890"),
        ("-98765432109876543210987", "-98765432109876543210987"),
        ("00123", "00123"),
        ("1e3", 1000.0),
    ],
)
def test_an_inferred_whole_number_keeps_its_digits(start, tmp_path, cell, value):
    path = tmp_path / "ids.csv"
    path.write_text(f"id\n{cell}\n")
    (record,) = start(FilesSource, config(path, csv_types="infer")).records()
    assert (record.value["id"], type(record.value["id"])) == (value, type(value))


def grown(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("how", ["cut", "rotated"])
def test_a_growing_file_that_is_replaced_is_not_waited_on_for_ever(start, tmp_path, how):
    path = tmp_path / "growing.txt"
    path.write_text("one\ntwo\n")
    run = start(FilesSource, config(path, stop_at_eof=False))
    assert [r.value for r in run.records()] == ["one", "two"]
    grown(path, "three\n")
    assert [r.value for r in run.records()] == ["three"]
    if how == "rotated":
        path.rename(tmp_path / "growing.1")
        assert run.records() == []
    path.write_text("x\n")
    assert [r.value for r in run.records()] == ["x"]


def test_a_longer_file_in_the_place_of_the_first_is_not_read_from_the_midst_of_a_line(start, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n")
    run = start(FilesSource, config(path))
    run.records()
    run.commit()
    path.write_text("a line of another file\n")
    run = run.again()
    assert [r.value for r in run.records()] == ["a line of another file"]
    run.stop()


def test_a_last_line_without_an_end_may_get_one_later(start, tmp_path):
    path = tmp_path / "lines.json"
    path.write_text('{"n": 1}')
    run = start(FilesSource, config(path))
    assert [r.value["n"] for r in run.records()] == [1]
    run.commit()
    grown(path, '\n{"n": 2}\n')
    again = run.again()
    assert [r.value["n"] for r in again.records()] == [2]
    again.stop()


@pytest.mark.parametrize(
    ("name", "text", "settings", "words"),
    [
        ("a.csv", "a,b,a\n1,2,3\n", {}, "'a' more than once.*csv.fields"),
        ("a.csv", "a,b\n1,2\n", {"key_field": "c"}, "key.field=c is none of the fields a, b"),
        ("a.json", "[1]\n", {"key_field": "c"}, "no object.*key.field=c"),
        ("a.json", "[1]\n", {"line_field": "c"}, "line 1: no object.*line.field=c"),
        ("a.csv", "a,b\n1,2\n", {"csv_quote": ","}, "must differ from csv.delimiter"),
        ("a.csv", "a,b\n1,2\n", {"topic": ""}, "topic=: is required"),
    ],
)
def test_what_would_lose_columns_or_keys_is_refused(tmp_path, start, name, text, settings, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises((ConnectError, ConfigError), match=words):
        start(FilesSource, config(path, **settings)).records()


def test_a_large_cell(start, tmp_path):
    path = tmp_path / "large.csv"
    path.write_text("a,b\n1," + "x" * 200_000 + "\n")
    assert [len(r.value["b"]) for r in start(FilesSource, config(path)).records()] == [200_000]


def test_a_damaged_archive_is_named(start, tmp_path):
    path = tmp_path / "rows.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rows.csv", "a\n" + "1\n" * 1000)
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    with pytest.raises(ConnectError, match=r"rows\.csv\.zip.*CRC"):
        start(FilesSource, config(path)).records()


def test_empty_lines_before_the_header_are_none(start, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n\nid,name\n\n1,a\n")
    assert [r.value for r in start(FilesSource, config(path)).records()] == [{"id": "1", "name": "a"}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
@pytest.mark.parametrize("stop_at_eof", ["true", "false"])
def test_lines_are_numbered_over_batches_and_blank_lines(start, tmp_path, name, stop_at_eof):
    rows = {"a.jsonl": '{"n": 1}\n\n{"n": 2}\n{"n": 3}\n', "a.csv": "n\n\n1\n2\n3\n"}[name]
    (tmp_path / name).write_text(rows)
    settings = {"line_field": "line", "batch_size": 2, "stop_at_eof": stop_at_eof}
    run = start(FilesSource, config(tmp_path / name, **settings))
    values = [record.value for _ in range(4) for record in run.poll()]
    lines = {"a.jsonl": [1, 3, 4], "a.csv": [3, 4, 5]}[name]
    assert [(int(value["n"]), value["line"]) for value in values] == list(zip((1, 2, 3), lines, strict=True))

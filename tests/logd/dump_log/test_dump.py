"""The dump command prints, line by line, what Kafka's DumpLogSegments prints of files that Kafka wrote."""

from __future__ import annotations

import io
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logd.dump_log.cli import app
from logd.dump_log.decoders import decode_offsets, decode_plain, decode_transactions
from logd.dump_log.dump import dump
from logd.dump_log.options import Options
from tests.support.depth import deep
from tests.support.java import dump_log_segments, needs_kafka
from tests.support.kafka_folder import DUMPED, FOLDER, dumps

ARGUMENTS = dict(dumps(FOLDER))
TOPICS = {"--offsets-decoder": "__consumer*/*", "--transaction-log-decoder": "__transaction*/*"}
FIRST = "00000000000000000000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the golden folder, which tests damage."""
    return Path(shutil.copytree(FOLDER, tmp_path / "kafka"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command in a folder and returns exit status, output and errors."""

    def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        result = CliRunner().invoke(app, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.mark.parametrize("name", ARGUMENTS)
def test_as_kafka_prints_it(run: Callable[..., tuple[int, str, str]], name: str) -> None:
    status, out, _ = run(FOLDER, *ARGUMENTS[name])
    assert out.splitlines() == (DUMPED / name).read_text(encoding="utf-8").splitlines()
    assert status == 0


def test_a_reader_that_has_enough_is_no_fault_of_the_file() -> None:
    """Readers that close the pipe early, as in `dump-log … | head`, are no fault of the file."""

    class FirstLine(io.StringIO):
        def write(self, text: str) -> int:
            if "\n" in self.getvalue():
                raise BrokenPipeError
            return super().write(text)

    err = io.StringIO()
    with pytest.raises(BrokenPipeError):
        dump(sorted(FOLDER.glob("*/*.log"))[:1], Options(), FirstLine(), err)
    assert err.getvalue() == ""


@needs_kafka
@pytest.mark.parametrize(
    "options",
    [
        ["--deep-iteration"],
        ["--print-data-log", "--skip-record-metadata"],
        ["--offsets-decoder"],
        ["--transaction-log-decoder"],
        ["--verify-index-only"],
        ["--index-sanity-check"],
        ["--max-bytes", "1000"],
        ["--value-decoder-class", "org.apache.kafka.tools.api.StringDecoder"],
    ],
    ids=lambda options: options[0].lstrip("-"),
)
def test_beside_kafkas_tool(run: Callable[..., tuple[int, str, str]], options: list[str]) -> None:
    logs = TOPICS.get(options[0], "*/*")
    files = sorted(path for path in FOLDER.glob(logs) if path.suffix in (".log", ".index", ".timeindex"))
    arguments = [*options, "--files", ",".join(str(path.relative_to(FOLDER)) for path in files)]
    theirs = dump_log_segments(*arguments, cwd=FOLDER)
    status, out, err = run(FOLDER, *arguments)
    assert out.splitlines() == theirs.stdout.splitlines()
    assert sorted(err.splitlines()) == sorted(theirs.stderr.splitlines())
    assert status == 0


def test_nothing_is_changed(folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    """Dumps change nothing and need no write access."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in before:
        path.chmod(0o400)
    for arguments in ARGUMENTS.values():
        assert run(folder, *arguments)[0] == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


class TestDamage:
    """Damaged files: errors say where and why, and the exit status is 1."""

    def test_flipped_bit(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        path = folder / "compacted-0" / f"{FIRST}.log"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        status, out, err = run(folder, "--files", f"compacted-0/{FIRST}.log")
        assert out.splitlines()[-1].endswith("isvalid: false")
        assert (status, err.count("CRC is")) == (1, 1)

    def test_no_batch(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        path = folder / "compacted-0" / f"{FIRST}.log"
        size = path.stat().st_size
        path.write_bytes(path.read_bytes() + bytes(100))
        status, out, err = run(folder, "--deep-iteration", "--files", f"compacted-0/{FIRST}.log")
        assert status == 1
        assert out.count("| offset: ") == 10
        assert err.splitlines()[0] == (
            f"compacted-0/{FIRST}.log: no batch at position {size}: batch magic 0, only 2 is supported"
        )

    def test_cut_off(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        path = folder / "compacted-0" / f"{FIRST}.log"
        os.truncate(path, path.stat().st_size - 1)
        status, out, err = run(folder, "--files", f"compacted-0/{FIRST}.log")
        assert status == 1
        assert "invalid bytes at the end of" in out.splitlines()[-1]
        assert "is cut off" in err

    def test_gaps_are_no_damage(self, run: Callable[..., tuple[int, str, str]]) -> None:
        status, _, err = run(FOLDER, "--deep-iteration", "--files", f"compacted-0/{FIRST}.log")
        assert status == 0
        assert err.splitlines() == [
            f"Non-consecutive offsets in {FOLDER}/compacted-0/{FIRST}.log",
            "  11 is followed by 18",
            "  1 is followed by 10",
        ]

    def test_index(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        index = folder / "all-0" / f"{FIRST}.index"
        entries = list(struct.iter_unpack(">ii", index.read_bytes()))
        offset, position = entries[-1]
        wrong = [*entries[:-1], (offset - 1, position), (offset, position + 1), (offset + 1, 1 << 30)]
        index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in wrong))
        status, _, err = run(folder, "--verify-index-only", "--files", f"all-0/{FIRST}.index")
        assert status == 1
        assert f"  Index offset: {offset - 1}, log offset: {offset}" in err.splitlines()
        assert f"no batch at position {1 << 30} of the log" in err
        assert run(folder, "--index-sanity-check", "--files", f"all-0/{FIRST}.index")[0] == 0

        index.write_bytes(struct.pack(">ii", -5, 0) + b"x")
        status, _, err = run(folder, "--index-sanity-check", "--files", f"all-0/{FIRST}.index")
        assert (status, "last offset is -5 which is less than the base offset 0" in err) == (1, True)
        index.write_bytes(struct.pack(">ii", 5, 0) + b"x")
        status, _, err = run(folder, "--index-sanity-check", "--files", f"all-0/{FIRST}.index")
        assert (status, "9 bytes which is neither positive nor a multiple of 8" in err) == (1, True)

    def test_time_index(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        index = folder / "all-0" / f"{FIRST}.timeindex"
        (time, offset), *_ = struct.iter_unpack(">qi", index.read_bytes())
        wrong = [(time, offset), (time - 5, offset), (time + 5, 1 << 20)]
        index.write_bytes(b"".join(struct.pack(">qi", *entry) for entry in wrong))
        status, _, err = run(folder, "--verify-index-only", "--files", f"all-0/{FIRST}.timeindex")
        assert status == 1
        assert f"  Index timestamp: {time - 5}, log timestamp: {time}" in err.splitlines()
        assert f"  Index timestamp: {time - 5}, Previously indexed timestamp: {time}" in err.splitlines()
        assert f"Indexed offset: {1 << 20}, found log offset: -1" in err.splitlines()

        index.write_bytes(struct.pack(">qi", time, 5) + struct.pack(">qi", time - 1, 6))
        status, _, err = run(folder, "--index-sanity-check", "--files", f"all-0/{FIRST}.timeindex")
        assert (status, "less than the first timestamp" in err) == (1, True)

    def test_snapshot(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        path = sorted((folder / "all-0").glob("*.snapshot"))[-1]
        whole = path.read_bytes()
        for data, message in [
            (whole[:-1] + bytes([whole[-1] ^ 1]), "CRC is no longer valid"),
            (b"\0\7" + whole[2:], "unknown file version 7"),
            (whole[:5], "5 bytes are no producer snapshot"),
        ]:
            path.write_bytes(data)
            status, out, err = run(folder, "--files", f"all-0/{path.name}")
            assert (status, message in err) == (1, True)
            assert out.splitlines() == [f"Dumping all-0/{path.name}"]

    def test_txn_index(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        path = next((folder / "all-0").glob("*.txnindex"))
        path.write_bytes(path.read_bytes() + b"rest")
        status, out, err = run(folder, "--files", f"all-0/{path.name}")
        assert (status, "4 bytes at position 34 are less than an entry" in err) == (1, True)
        assert out.count("producerId: ") == 1

    def test_what_is_not_there(self, folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
        (folder / "all-0" / f"{FIRST}.log").unlink()
        files = [f"all-0/{FIRST}.log", f"all-0/{FIRST}.index", "all-0/partition.metadata"]
        status, _, err = run(folder, "--files", ",".join(files))
        assert status == 1
        assert err.splitlines() == [
            f"{files[0]}: No such file or directory",
            f"{files[1]}: No such file or directory",
            f"Ignoring unknown file {files[2]}",
        ]

    def test_no_offset_in_the_name(self, tmp_path: Path) -> None:
        (tmp_path / "some.log").write_bytes(b"")
        err = io.StringIO()
        assert not dump([tmp_path / "some.log"], Options(), io.StringIO(), err)
        assert "does not begin with an offset" in err.getvalue()


def test_decoders_of_numbers(folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    arguments = ["--key-decoder-class", "LongDecoder", "--value-decoder-class", "IntegerDecoder"]
    status, out, _ = run(folder, *arguments, "--files", f"compacted-0/{FIRST}.log")
    assert status == 0
    assert "key: 5 bytes, not a number of 8 payload: 8 bytes, not a number of 4" in out
    assert run(folder, "--key-decoder-class", "Other", "--files", f"compacted-0/{FIRST}.log")[0] == 2


def test_a_preallocated_index(folder: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    """Index files of a running or killed Apache Kafka have zeros after their entries, which are ignored."""
    for path in (folder / "all-0" / f"{FIRST}.index", folder / "all-0" / f"{FIRST}.timeindex"):
        before = run(folder, "--files", f"all-0/{path.name}")
        os.truncate(path, 10 * 1024 * 1024 // 12 * 12)
        assert run(folder, "--files", f"all-0/{path.name}") == before
        path.write_bytes(bytes(1200))
        assert run(folder, "--files", f"all-0/{path.name}") == (0, f"Dumping all-0/{path.name}\n", "")


@deep
@pytest.mark.parametrize("seed", range(20))
def test_garbage(folder: Path, seed: int) -> None:
    """Bytes changed anywhere are reported or make no difference, and never end the command."""
    luck = random.Random(seed)
    for name in ("all-0", "__consumer_offsets-1", "__transaction_state-2"):
        decoder = {"__c": decode_offsets, "__t": decode_transactions}.get(name[:3], decode_plain)
        paths = sorted(path for path in (folder / name).iterdir() if path.suffix)
        for path in paths:
            data = bytearray(path.read_bytes())
            for _ in range(luck.randrange(5) if data else 0):
                data[luck.randrange(len(data))] = luck.randrange(256)
            path.write_bytes(data[: luck.choice([len(data), luck.randrange(len(data) + 1)])])
        for options in (Options(decoder=decoder, print_data_log=True), Options(index_sanity_check=True)):
            err = io.StringIO()
            sound = dump(paths, options, io.StringIO(), err)
            assert sound or err.getvalue()

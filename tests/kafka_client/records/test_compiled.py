"""The compiled modules are at work, and up to date; their sources read and write the same without Cython."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from array import array
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import Codec, NewRecord, build_batch, read_header, reader
from kafka_client.records.header import HEADER_SIZE
from kafka_client.uncompiled import PACKAGES, VARIABLE
from tests.support import depth
from tests.support.plain_modules import plain_module

ROOT = Path(__file__).parents[3]
MODULES = re.findall(r'^    "([a-z0-9_.]+)",$', (ROOT / "setup.py").read_text(), re.MULTILINE)
SUFFIX = ".so"

uncompiled = pytest.mark.skipif(
    VARIABLE in os.environ, reason=f"{VARIABLE} is set: the compiled modules are not at work"
)


PLAIN = plain_module("kafka_client.records.reader")


def test_setup_names_the_modules() -> None:
    assert "kafka_client.records.reader" in MODULES
    assert {name.partition(".")[0] for name in MODULES} <= set(PACKAGES)


@pytest.mark.parametrize("name", MODULES)
def test_the_variable_has_sources_run(name: str) -> None:
    origin = str(importlib.import_module(name).__file__)
    assert VARIABLE not in os.environ or origin.endswith(".py"), origin


@uncompiled
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_compiled_and_up_to_date(name: str) -> None:
    origin = Path(str(importlib.import_module(name).__file__))
    source = ROOT / f"{name.replace('.', '/')}.py"
    if origin.suffix != SUFFIX:
        pytest.skip(f"{name} is not compiled: install a C compiler, and run make venv")
    assert origin.stat().st_mtime >= source.stat().st_mtime, f"{source} was edited: run make venv"


def test_the_sources_run_without_cython() -> None:
    names = ", ".join(MODULES)
    script = (
        "import sys; sys.modules['cython'] = None; import " + names + "\n"
        f"for name in {MODULES}: assert sys.modules[name].__file__.endswith('.py'), name\n"
        "from kafka_client.records import build_batch, decode_records\n"
        "records = [(5, b'k', b'v' * 100, (('h', None),)), (9, None, None, ())]\n"
        "read = decode_records(build_batch(records))\n"
        "assert read == [(n, *record) for n, record in enumerate(records)], read\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, VARIABLE: "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what is compiled. What Cython makes of it once stays there for each compiler."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder


@depth.deep
@pytest.mark.parametrize("compiler", ["/nowhere/cc", "false"])
def test_without_a_compiler_one_line_says_so(compiler: str, sources: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=sources,
        env={**os.environ, "CC": compiler},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = (done.stdout + done.stderr).splitlines()
    assert all(name in line for name in MODULES) and "Install a C compiler" in line
    assert not list(sources.rglob("*.so"))


rows = st.lists(
    st.tuples(
        st.integers(-(1 << 62), 1 << 62),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


def outcome(module: ModuleType, batch: bytes) -> list[object]:
    """Return the result of each way to read `batch`, or the text of its error."""
    results: list[object] = []
    for form in ("records", "columns", "check", "spans", "arrow"):
        try:
            results.append(getattr(module.RecordReader(batch), form)())
        except CorruptRecordBatch as error:
            results.append(str(error))
    latest: dict[bytes, bytes | None] = {}
    try:
        results.append((module.RecordReader(batch).latest(latest), latest))
    except CorruptRecordBatch as error:
        results.append((str(error), latest))
    return results


@uncompiled
@given(
    rows=rows,
    codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]),
    changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=3),
)
def test_both_forms_read_the_same(
    rows: list[NewRecord], codec: Codec, changes: list[tuple[int, int]]
) -> None:
    batch = bytearray(build_batch(rows, codec=codec))
    for place, byte in changes:
        batch[HEADER_SIZE + place % (len(batch) - HEADER_SIZE)] = byte
    assert outcome(reader, bytes(batch)) == outcome(PLAIN, bytes(batch))
    assert read_header(batch).count == len(rows)


@uncompiled
@given(rows=rows)
def test_both_forms_write_the_same(rows: list[NewRecord]) -> None:
    compiled, plain = (
        importlib.import_module("kafka_client.records.writer"),
        plain_module("kafka_client.records.writer"),
    )
    assert compiled.estimate_sizes(rows) == plain.estimate_sizes(rows)
    results = []
    for module in (compiled, plain):
        try:
            results.append(bytes(module.encode_records(rows, rows[0][0])))
        except OverflowError as error:
            results.append(type(error))
    assert results[0] == results[1]


@uncompiled
def test_a_batch_that_changes_between_two_walks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers are allocated for what the first walk measured; the second one must not write past them."""
    if not reader.__file__.endswith(SUFFIX):
        pytest.skip("kafka_client.records.reader is not compiled: install a C compiler, and run make venv")
    batch = bytearray(build_batch([(0, None, b"", ()), (0, b"k" * 50, b"v" * 50, ())]))
    small = bytes(build_batch([(0, None, b"", ()), (0, None, b"", ((" " * 97, b""),))]))
    assert len(batch) == len(small)
    larger = bytes(batch)
    batch[:] = small

    def array_of(kind: str, values: bytes) -> array[int]:
        batch[:] = larger
        return array(kind, values)

    monkeypatch.setattr(reader, "array", array_of)
    with pytest.raises(BufferError, match="changed"):
        reader.RecordReader(batch).arrow()

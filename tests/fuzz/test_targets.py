"""The corpus kept is run again, and new inputs are looked for, hundreds for each target; see `run`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client.errors import MalformedMessage
from tests.fuzz import targets
from tests.fuzz.targets import TARGETS, Target
from tests.support import depth

RUNS = depth.times(1000)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def counted() -> Iterator[None]:
    """Memory is counted, see `targets.Bounded`."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_the_corpus(target: Target, counted: None) -> None:
    inputs = sorted(target.corpus.iterdir())
    assert len(inputs) > 20
    for path in inputs:
        assert path.stat().st_size <= targets.SIZE_MAX, path
        try:
            assert target.run(path.read_bytes()), "not of the target's kind"
        except Exception as error:
            error.add_note(str(path))
            raise


@depth.deep
@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_new_inputs(target: Target, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    # The same ones in every run, so that what is green stays green; more depth looks for others.
    seed = 1 if depth.DEPTH <= 1 else random.SystemRandom().randrange(1, 1 << 31)
    command = [sys.executable, "-m", "tests.fuzz.run", target.name, "--runs", str(RUNS), "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{output}\n{[path.read_bytes() for path in tmp_path.glob('crash-*')]}"
    assert f"Done {RUNS} runs" in output, output


def test_a_bug_would_be_found(monkeypatch: pytest.MonkeyPatch, counted: None) -> None:
    """Another error than those documented, or an allocation nothing explains."""

    def of(run: object) -> None:
        monkeypatch.setitem(targets._decoders, (3, 9), run)  # type: ignore[arg-type]

    def refuses(data: bytes, pos: int) -> None:
        raise MalformedMessage("no")

    def fails(data: bytes, pos: int) -> None:
        raise IndexError

    def hoards(data: bytes, pos: int) -> None:
        bytearray(2 * targets.BYTES_MAX)

    request = b"\0\3\0\x09\0\0\0\7\xff\xff\0"
    of(refuses)
    assert targets.requests(request)
    of(fails)
    with pytest.raises(IndexError):
        targets.requests(request)
    of(hoards)
    with pytest.raises(AssertionError, match="allocated"):
        targets.requests(request)

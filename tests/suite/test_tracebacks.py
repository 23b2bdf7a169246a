"""The output of a process is searched for tracebacks when the process ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.logd_process import LogdProcess
from tests.support.tracebacks import assert_no_tracebacks, tracebacks

SAID = """\
INFO logd: begins
Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in f
    raise OSError(28, "no space")
OSError: [Errno 28] no space
INFO logd: goes on
"""


def test_each_traceback_is_known_by_its_error() -> None:
    assert [error for error, _ in tracebacks(SAID)] == ["KeyError: 'x'", "OSError: [Errno 28] no space"]


def test_only_those_expected_are_taken() -> None:
    assert_no_tracebacks(SAID, ["KeyError", "no space"])
    with pytest.raises(AssertionError, match="KeyError: 'x'"):
        assert_no_tracebacks(SAID, ["no space"])
    with pytest.raises(AssertionError, match="OSError"):
        assert_no_tracebacks(SAID, ["KeyError"])


def test_a_trace_inside_a_line_is_a_report() -> None:
    assert_no_tracebacks('{"state": "FAILED", "trace": "Traceback (most recent call last):\\n  File"}\n')


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_that_has_said_one_fails_its_test(end: str, tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path).start()
    try:
        with (tmp_path / "logd.log").open("a") as log:
            log.write(SAID)
        with pytest.raises(AssertionError, match="a traceback that ends with KeyError"):
            getattr(logd, end)()
    finally:
        logd.tracebacks = ("KeyError", "OSError")
        logd.kill()

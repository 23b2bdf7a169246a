"""`millstream test-broker -- COMMAND`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.depth import deep
from tests.support.waiting import wait_for

COMMAND = (sys.executable, "-m", "millstream", "test-broker")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=100
    )


def script(tmp_path: Path, text: str) -> tuple[str, str]:
    path = tmp_path / "command.py"
    path.write_text(text)
    return sys.executable, str(path)


@deep
def test_the_command_finds_its_broker_and_topics(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "import os, sys\n"
        "from confluent_kafka.admin import AdminClient\n"
        "assert os.environ['OTHER'] == os.environ['KAFKA_BOOTSTRAP_SERVERS']\n"
        "found = AdminClient({'bootstrap.servers': os.environ['OTHER']}).list_topics(timeout=60).topics\n"
        "print({name: len(topic.partitions) for name, topic in found.items()}, sys.argv[1:])\n",
    )
    done = run("--topic", "a:3", "--topic", "b", "--env", "OTHER", "--", *command, "--topic", "c")
    assert done.stdout == "{'a': 3, 'b': 1} ['--topic', 'c']\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failure_is_passed_on_with_a_report(tmp_path: Path) -> None:
    done = run("--topic", "orders", "--", *script(tmp_path, "raise SystemExit(7)"))
    assert done.returncode == 7
    assert "orders-0: 0 to 0" in done.stderr and "no requests" in done.stderr


@deep
def test_a_command_that_is_none(tmp_path: Path) -> None:
    done = run("--", tmp_path / "nothing")
    assert done.returncode == 127
    assert f"cannot run {tmp_path / 'nothing'}: No such file or directory" in done.stderr


@deep
def test_wrong_arguments_are_named() -> None:
    for arguments, message in (
        (("--topic", "a:none"), "'a:none' is not NAME or NAME:PARTITIONS"),
        (("--override", "num.partitions=none"), "num.partitions=none is not allowed"),
        (("--topic", "a b"), "a b"),
    ):
        done = run(*arguments, "--", "true")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@deep
def test_signals_are_passed_on(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        f"pathlib.Path({str(tmp_path / 'up')!r}).touch()\n"
        "while True:\n"  # not `signal.pause()`: a signal just before it would not end it
        "    time.sleep(0.05)\n",
    )
    with subprocess.Popen([*COMMAND, "--", *command], stderr=subprocess.DEVNULL) as process:
        wait_for((tmp_path / "up").exists)
        process.terminate()
        assert process.wait(100) == 9


def test_the_end_by_a_signal_is_told_as_a_shell_does(tmp_path: Path) -> None:
    done = run("--", *script(tmp_path, f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"))
    assert done.returncode == 128 + signal.SIGKILL
    assert os.environ.get("KAFKA_BOOTSTRAP_SERVERS") is None

"""The progress bar of a terminal; tmux is the terminal, and logs its output."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.millstream_command import command, run
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux")

ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>][0-9A-B]?")
DONE = b"ended with"


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


def recorded(folder: Path, line: str, **environment: str) -> bytes:
    """Run a line of shell in a terminal of its own; everything the terminal was sent."""
    socket, log = folder / "tmux", folder / "terminal.log"
    log.touch()
    script = folder / "session.sh"
    # The pause lets `pipe-pane` begin before the line does: it makes the file that is waited for.
    script.write_text(
        f"while [ ! -e {shlex.quote(str(folder / 'go'))} ]; do sleep 0.05; done\n"
        f"{line}\necho {DONE.decode()} $?\nread rest\n"
    )
    tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    clean = {key: value for key, value in os.environ.items() if key not in ("TMUX", "NO_COLOR")}
    try:
        subprocess.run(
            [*tmux, "new-session", "-d", "-x", "120", "-y", "40", "-s", "s", f"sh {script}"],
            check=True,
            env={**clean, "TERM": "xterm-256color", **environment},
        )
        subprocess.run(
            [*tmux, "pipe-pane", "-t", "s", f"cat >> {shlex.quote(str(log))}"], check=True, env=clean
        )
        (folder / "go").touch()
        wait_for(lambda: DONE in log.read_bytes())
        return log.read_bytes()
    finally:
        subprocess.run([*tmux, "kill-server"], env=clean)


@deep
def test_a_bar_with_rate_and_time_left_while_a_file_is_sent(logd: LogdProcess, tmp_path: Path) -> None:
    topic = create_topic(logd, "bar")
    file = tmp_path / "lines"
    file.write_bytes(b"a line of thirty letters.....\n" * 200_000)
    shown = recorded(tmp_path, shlex.join(command("produce", topic, file, "-b", logd.bootstrap)))
    text = ESCAPE.sub(b"", shown)
    assert b"produced" in text and b"bytes" in text
    assert re.search(rb"[\d,]+/s", text), text
    assert re.search(rb"\d:\d\d:\d\d", text), text
    assert text.rstrip().endswith(b"ended with 0")
    count = run("consume", topic, "-e", "-f", ".", "-b", logd.bootstrap).stdout
    assert len(count) == 200_000


@deep
def test_a_bar_while_records_go_to_a_file_and_none_among_records(logd: LogdProcess, tmp_path: Path) -> None:
    topic = create_topic(logd, "read")
    run("produce", topic, "-b", logd.bootstrap, stdin=b"line\n" * 100_000)
    for name in ("file", "terminal"):
        (tmp_path / name).mkdir()
    line = shlex.join(command("consume", topic, "-e", "-b", logd.bootstrap))
    to_file = ESCAPE.sub(b"", recorded(tmp_path / "file", f"{line} > {tmp_path / 'out'}"))
    assert b"consumed" in to_file and b"records" in to_file
    assert (tmp_path / "out").read_bytes() == b"line\n" * 100_000
    to_terminal = recorded(tmp_path / "terminal", f"{line} -n 3")
    assert b"consumed" not in to_terminal
    assert to_terminal.count(b"line") == 3


@deep
def test_no_color(logd: LogdProcess, tmp_path: Path) -> None:
    line = shlex.join(
        command("bench", "produce", create_topic(logd, "plain"), "-n", 20_000, "-b", logd.bootstrap)
    )
    for name in ("color", "plain"):
        (tmp_path / name).mkdir()
    colors = re.compile(rb"\x1b\[[0-9;]*3[0-9][0-9;]*m")
    assert colors.search(recorded(tmp_path / "color", f"{line} --record-size 100"))
    assert not colors.search(recorded(tmp_path / "plain", f"{line} --record-size 100", NO_COLOR="1"))

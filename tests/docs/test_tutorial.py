"""docs/tutorial.md: all of it in its order, with the outputs that it shows."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.docs.pages import ROOT, Block, blocks
from tests.docs.test_commands_run import SECONDS, read_until
from tests.support.depth import deep
from tests.support.ports import free_port
from tests.support.waiting import wait_for

PAGE = ROOT / "docs" / "tutorial.md"
READY = {"logd": b"logd ready at", "streams": b"RUNNING"}
COUNTS = 8
"""Words of the three lines."""


class Tutorial:
    """A reader's folder, with ports of this test's in place of the page's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ports = {port: str(free_port()) for port in ("9092", "9192")}
        # Other tests run an application of the same id, and the default state directory is in TMPDIR.
        profile = {
            "MILLSTREAM_BOOTSTRAP_SERVER": "",
            "XDG_CONFIG_HOME": str(folder),
            "TMPDIR": str(folder),
        }
        self._environment = {**os.environ, **profile, "PYTHONPATH": str(ROOT)}

    def here(self, text: str) -> str:
        for port, ours in self._ports.items():
            text = re.sub(rf"\b{port}\b", ours, text)
        return text

    def write(self, block: Block) -> None:
        name = block.text.partition("\n")[0].removeprefix("# ")
        (self.folder / name).write_text(self.here(block.text))

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        words = shlex.split(self.here(command))
        assert words.pop(0) == "millstream"
        with subprocess.Popen(
            [sys.executable, "-m", "millstream", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=self.folder,
        ) as process:
            try:
                read_until(process, READY[words[0]])
                yield
                process.send_signal(signal.SIGINT)
                output, _ = process.communicate(timeout=SECONDS)
                assert process.returncode in (0, 130), output.decode()
            finally:
                process.kill()

    def run(self, command: str) -> str:
        """Return what a line of the page prints."""
        address = f"127.0.0.1:{self._ports['9092']}"
        shell = f'millstream() {{ "{sys.executable}" -m millstream "$@"; }}; {self.here(command)}'
        for verb in ("topic create lines words", "produce lines", "consume lines -e", "consume words -e"):
            shell = shell.replace(f"millstream {verb}", f"millstream {verb} -b {address}")
        done = subprocess.run(
            ["bash", "-c", shell],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=self.folder,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()


def steps(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a session, each with what the page says it prints."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


@deep
def test_a_reader_gets_to_its_end(tmp_path: Path) -> None:
    tutorial = Tutorial(tmp_path)
    with ExitStack() as stack:
        for block in blocks(PAGE, "sh", "console", "properties", "python"):
            if block.language in ("properties", "python"):
                tutorial.write(block)
            elif block.language == "sh":
                stack.enter_context(tutorial.running(block.text.strip()))
            else:
                for command, output in steps(block):
                    if "consume words" in command:
                        wait_for(lambda command=command: len(tutorial.run(command).splitlines()) == COUNTS)  # type: ignore[misc]
                    assert tutorial.run(command) == output

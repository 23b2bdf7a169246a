"""The commands of a page, run in their order on ports and folders of this run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.docs.pages import ROOT, blocks
from tests.docs.test_commands_run import read_until
from tests.support.tracebacks import assert_no_tracebacks

SECONDS = 100.0


class Page:
    """Commands of a page; `places` maps its addresses and folders to those of this run."""

    def __init__(self, page: Path, folder: Path, places: Mapping[str, str]) -> None:
        self.folder = folder
        self.places = dict(places)
        self.blocks = [
            block.text.replace("\\\n", " ").splitlines() for block in blocks(page, "sh") if block.is_run
        ]
        self._page = page

    def here(self, text: str) -> str:
        """Return a page's text with the ports and folders of this run."""
        for name, place in self.places.items():
            text = text.replace(name, place)
        return text

    def port(self, port: str) -> int:
        """Return the port here of a broker that has another one on the page."""
        return int(self.places[f"127.0.0.1:{port}"].rpartition(":")[2])

    def write_properties(self) -> None:
        """Write the properties file that the page shows."""
        (block,) = blocks(self._page, "properties")
        name = block.text.partition("\n")[0].removeprefix("# ")
        (self.folder / name).write_text(self.here(block.text))

    def start(self, line: str) -> subprocess.Popen[bytes]:
        """Start a command of the page in the folder, and return its process."""
        command = re.sub(r"^millstream ", f"{sys.executable} -m millstream ", self.here(line))
        return subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(self.folder)},
            cwd=self.folder,
        )

    def done(self, line: str) -> str:
        """Run a command that ends by itself with status 0, and return what it prints."""
        with self.start(line) as process:
            output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{line}: {output.decode()}"
        return output.decode()

    @contextmanager
    def running(self, line: str, ready: bytes) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
        """Run a command until the block ends; yield its process and its output up to `ready`."""
        with self.start(line) as process:
            try:
                yield process, read_until(process, ready, behind=b"\n")
                process.terminate()
                output, _ = process.communicate(timeout=SECONDS)
                assert_no_tracebacks(output.decode())
            finally:
                process.kill()

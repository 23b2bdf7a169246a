"""Load from a C client: kcat (librdkafka), from Debian's package of that name."""

from __future__ import annotations

import random
import shutil
import string
import subprocess
import sys
from pathlib import Path


def require() -> str:
    """Return the path of kcat. Without kcat, end the benchmark with a message about what to install."""
    path = shutil.which("kcat")
    if path is None:
        sys.exit("this benchmark drives the broker with kcat: apt-get install kcat")
    return path


def write_lines(path: Path, count: int, size: int) -> None:
    """Write `count` lines of `size` random letters, the same every time; kcat sends a record per line."""
    letters = random.Random(7)
    block = ["".join(letters.choices(string.ascii_letters, k=size)) for _ in range(1000)]
    with path.open("w") as lines:
        for at in range(0, count, 1000):
            lines.write("\n".join(block[: min(1000, count - at)]) + "\n")


def produce(bootstrap: str, topic: str, lines: Path, **settings: str | int) -> None:
    """Produce every line of the file; settings are librdkafka's, with `_` for `.`."""
    command = [require(), "-P", "-q", "-b", bootstrap, "-t", topic, "-l", str(lines)]
    for key, value in settings.items():
        command += ["-X", f"{key.replace('_', '.')}={value}"]
    subprocess.run(command, check=True)


def consume(bootstrap: str, topic: str, count: int) -> None:
    """Read `count` records from the beginning and discard them."""
    command = [
        require(),
        "-C",
        "-q",
        "-b",
        bootstrap,
        "-t",
        topic,
        "-o",
        "beginning",
        "-c",
        str(count),
        "-f",
        "",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

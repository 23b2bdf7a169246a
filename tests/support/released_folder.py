"""A log directory written by an earlier release of logd, with everything in it a log can have.

    python -m tests.support.released_folder COMMIT

writes the one kept in tests/golden/logd-VERSION; COMMIT is the release's. Make one at each release: brokers
are upgraded by starting the next release in the folder of the one before.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.kafka_folder import GOLDEN, SETTINGS, fill
from tests.support.logd_process import LogdProcess

RELEASED = sorted(GOLDEN.glob("logd-*"))


def write(commit: str) -> Path:
    """Write the folder of a release, and return its path."""
    with tempfile.TemporaryDirectory() as name:
        source, folder = Path(name) / "source", Path(name) / "logd"
        subprocess.run(["git", "worktree", "add", "--detach", source, commit], check=True)
        try:
            version = re.search(r'^version = "(.+)"', (source / "pyproject.toml").read_text(), re.MULTILINE)
            assert version is not None, f"{commit} has no version"
            logd = LogdProcess(folder, {**SETTINGS, "transaction.state.log.num.partitions": 5})
            # The release's source, not today's: -m imports from the working directory first, and the
            # processes that logd starts have no working directory there.
            logd.inside = ["env", "-C", str(source)]
            logd.environment = {"PYTHONPATH": str(source)}
            with logd:
                fill(logd, ["classic"])
            target = GOLDEN / f"logd-{version[1]}"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder / "data", target, ignore=shutil.ignore_patterns(".lock", "*.deleted"))
            return target
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", source], check=True)


if __name__ == "__main__":
    print(write(sys.argv[1]))

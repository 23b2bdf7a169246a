"""The process of a test's Connect worker: the command, ending with its standard input.

So none outlives the test run that started it, however that ended.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def main() -> None:
    """Run `millstream connect` with this process's arguments."""
    from connect.cli import app

    threading.Thread(target=_end_with_input, daemon=True).start()
    app()


def _end_with_input() -> None:
    # Not through sys.stdin: its buffer's lock would be held when the interpreter ends.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)

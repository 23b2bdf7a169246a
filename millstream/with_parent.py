"""Commands that end with the process that starts them, however that ends: kill -9 leaves nothing behind.

Linux tells a process when its parent is gone (PR_SET_PDEATHSIG). It is asked for in between, by an
interpreter that then becomes the command: what runs between fork and exec must not be Python where there are
threads. Elsewhere, and where another thread than the main one starts the command (Linux takes the thread for
the parent, and threads end), the command is left as it is.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Final

PR_SET_PDEATHSIG: Final = 1
_BECOME: Final = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, int(sys.argv[1]), 0, 0, 0)
if os.getppid() != int(sys.argv[2]):
    sys.exit("its parent has ended")
os.execvp(sys.argv[3], sys.argv[3:])
"""


def with_parent(command: Sequence[str], number: signal.Signals = signal.SIGKILL) -> list[str]:
    """The command line to start instead, in this thread: it gets the signal when this process ends."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(int(number)), str(os.getpid()), *command]


def hear_of_parents_end(number: signal.Signals) -> None:
    """Have this process get the signal when the thread ends that started it; elsewhere than on Linux nothing
    is done.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)

"""Commands that end with the process that starts them, even if that is killed.

Linux signals a process when its parent is gone (PR_SET_PDEATHSIG). An interpreter requests the signal and
then becomes the command, since Python must not run between fork and exec in a process with threads. Linux
regards the starting thread as the parent, and threads end. So the command is unchanged if another thread than
the main one starts it, and on other systems.
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
    """Return a command line that gets the signal when this process ends. Start it in this thread."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _BECOME, str(int(number)), str(os.getpid()), *command]


def hear_of_parents_end(number: signal.Signals) -> None:
    """Have Linux send this process the signal when the thread that started it ends. Do nothing elsewhere."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)

"""A files sink whose worker stops itself (SIGSTOP) at a point of its work, as a suspended machine would.

stand.still = open    before its partitions are opened
              write   before the first file is begun
              fsync   in the first file's fsync
              rename  between the fsync and the rename
"""

import os
import signal
import threading

from plugins.files import FilesSink
from plugins.files import sink as files_sink
from plugins.files.sink import FilesSinkTask


def _stand_still():
    """Stop the process at this very step.

    A signal to the process may reach another thread first, and this thread would go on for a while.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


class StandingStillTask(FilesSinkTask):
    """Stands still once."""

    def start(self, config):
        super().start(config)
        self._at = config["stand.still"]
        fsync = os.fsync

        def slow(descriptor):
            self._reach("fsync")
            fsync(descriptor)
            self._reach("rename")

        files_sink.os = type("os", (), {**vars(os), "fsync": staticmethod(slow)})

    def _reach(self, point):
        if self._at == point:
            self._at = None
            _stand_still()

    def open(self, partitions):
        self._reach("open")
        super().open(partitions)

    def _write_out(self, tp):
        self._reach("write")
        super()._write_out(tp)


class StandingStill(FilesSink):
    """The files sink with `stand.still`."""

    task_class = StandingStillTask

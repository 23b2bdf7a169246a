"""``logd`` as a real process, for tests of every package.

    with LogdProcess(tmp_path / "logd") as logd:
        producer = Producer({"bootstrap.servers": logd.bootstrap})

The port is free, taken at the first start and kept over restarts.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.broker_process import STOP_SECONDS, BrokerProcess
from tests.support.ports import free_port
from tests.support.tracebacks import assert_no_tracebacks

READY_SECONDS = 100.0
_READY = re.compile(r"^logd ready at (?P<host>.+):(?P<port>\d+) \(", re.MULTILINE)

QUICK_GROUPS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "5"}
"""Settings with which groups form at once. An override of the same key wins."""
NO_RETENTION = {"log.retention.check.interval.ms": str(24 * 3600 * 1000)}
"""Many records in tests are of 1970, and a broker shared by a whole run would come to find them too old."""


class LogdProcess(BrokerProcess):
    """A broker in ``folder``: data in ``folder/data``, its output in ``folder/logd.log``.

    ``overrides`` are Kafka's keys; ``node_id`` is 1 unless overridden. ``host``: the address it listens at;
    ``inside``: what stands in front of its command line (`Hosts.inside`), ``environment``: what is added to
    the test's own; any of them may be changed before a start. As a context manager it is started, and killed
    in the end if it still runs. Whenever it has ended its output is searched for tracebacks;
    ``tracebacks`` names the errors of those a test expects.
    """

    def __init__(
        self,
        folder: Path,
        overrides: Mapping[str, object] | None = None,
        *,
        config: Path | None = None,
        python: Sequence[str] = (),
        tracebacks: Sequence[str] = (),
    ) -> None:
        super().__init__(folder, "logd.log")
        self.data = folder / "data"
        self.overrides: dict[str, object] = {
            "log.dirs": self.data,
            **QUICK_GROUPS,
            **NO_RETENTION,
            **(overrides or {}),
        }
        self.tracebacks = tuple(tracebacks)
        self.inside: Sequence[str] = ()
        self.environment: dict[str, str] = {}
        self._command = [sys.executable, *python, "-m", "logd"]
        if config is not None:
            self._command += ["--config", str(config)]

    @property
    def pid(self) -> int:
        """The process that runs now, or ran last."""
        assert self._process is not None, "never started"
        return self._process.pid

    def spawn(self) -> None:
        """Begin a start without waiting for it to be ready."""
        assert not self.is_running, "already running"
        self.port = self.port or free_port()
        settings = {"listeners": f"PLAINTEXT://{self.bootstrap}", **self.overrides}
        arguments = [part for key, value in settings.items() for part in ("--override", f"{key}={value}")]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self.inside, *self._command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
            )

    def start(self) -> Self:
        """Start and wait until it is ready; AssertionError with its output when it does not get there."""
        before = len(self.log)
        is_chosen_here = not self.port and "listeners" not in self.overrides
        self.spawn()
        deadline = time.monotonic() + READY_SECONDS
        while (ready := _READY.search(self.log[before:])) is None:
            if is_chosen_here and not self.is_running and "cannot listen" in self.log[before:]:
                self.port = 0  # another was faster
                return self.start()
            assert self.is_running, f"logd ended with status {self.returncode}:\n{self.log[before:]}"
            assert time.monotonic() < deadline, f"logd is not ready:\n{self.log[before:]}"
            time.sleep(0.01)
        self.port = int(ready["port"])
        return self

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it ends by itself; the exit status."""
        status = super().wait(seconds)
        assert_no_tracebacks(self.log, self.tracebacks)
        return status

    def wait_for_log(self, text: str, seconds: float = READY_SECONDS) -> None:
        """Wait until ``text`` stands in the output."""
        deadline = time.monotonic() + seconds
        while text not in self.log:
            assert time.monotonic() < deadline, f"{text!r} is not in the output:\n{self.log}"
            time.sleep(0.01)

    @property
    def returncode(self) -> int | None:
        """The exit status, None while it runs."""
        return self._process.poll() if self._process is not None else None

    @property
    def rss_bytes(self) -> int:
        """Resident memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    @property
    def peak_bytes(self) -> int:
        """The most resident memory since the start, or since `forget_peak`."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    def forget_peak(self) -> int:
        """Have `peak_bytes` begin again where memory is now, and return it.

        Where the kernel does not allow that, it is the peak so far: more may stay unseen, nothing is blamed.
        """
        with suppress(OSError):
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return self.peak_bytes

    @property
    def cpu_seconds(self) -> float:
        """User and system time used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connect(self, seconds: float = 60.0) -> socket.socket:
        """Open a raw connection to the broker."""
        return socket.create_connection((self.host, self.port), timeout=seconds)

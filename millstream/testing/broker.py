"""The broker of a test: its address, its contents and its faults."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from millstream.testing.faults import Faults
from millstream.testing.kafka import Kafka
from millstream.testing.request import Request

if TYPE_CHECKING:
    from datetime import timedelta

    from millstream.testing.host import Host


class Broker(Kafka):
    """A broker for tests, used as a context manager or by `start` and `stop`.

    `config`: Kafka's keys, on top of `settings.DEFAULTS`. `in_process`: run the broker in a thread of this
    process. `folder`: the directory for data and output; without it a temporary one, removed at the end.
    `faults`: faults for the broker's clients and disk.

    Raises BrokerError if the broker does not start or cannot carry out a call.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        in_process: bool = False,
        folder: Path | str | None = None,
    ) -> None:
        super().__init__()
        self._host = _host(dict(config or {}), in_process, folder)
        self.faults = Faults(self._host)

    # Life

    def start(self) -> Self:
        """Start the broker; after `kill` at the same address with the same data."""
        self._host.folder.mkdir(parents=True, exist_ok=True)
        self._host.start()
        return self

    def stop(self) -> None:
        """Stop the broker and remove its temporary folder."""
        self._close_client()
        self._host.stop()

    def clean(self) -> None:
        """Reset the broker: no topics, groups, transactional ids or faults; the real time.

        Clients stay connected, unless the clock, the disk or the settings were changed or the broker was
        killed. In these cases a new broker starts at the same address.
        """
        self._host.resume()
        if not self._host.is_running:
            self._host.start()
        self._host.ask("clean")

    @property
    def bootstrap_servers(self) -> str:
        """``host:port``, for clients."""
        return f"127.0.0.1:{self._host.port}"

    @property
    def folder(self) -> Path:
        """The directory of the data and output."""
        return self._host.folder

    @property
    def in_process(self) -> bool:
        """True if the broker runs in this process."""
        return self._host.in_process

    @property
    def log(self) -> str:
        """The output of a broker's process; empty for a thread, which uses Python's logging."""
        return self._host.log

    # Faults

    def restart(self) -> None:
        """Stop cleanly and start again.

        Connections are lost, the data stays, and a full disk has room again.
        """
        self._host.resume()
        if self._host.is_running:
            self._host.ask("restart")
        else:
            self._host.start()

    def kill(self) -> None:
        """Kill the process with SIGKILL; `start` starts it again. Raises BrokerError with `in_process`."""
        self._host.kill()

    def pause(self) -> None:
        """Pause the broker until `resume`: connections stay open, nothing is answered."""
        self._host.pause()

    def resume(self) -> None:
        """End a pause."""
        self._host.resume()

    def advance(self, time: timedelta | float) -> None:
        """Put the broker's clock forward by a timedelta or seconds; it goes on from there.

        Expired group sessions and transactions end (transactions within a second), and retention is applied
        before the return. `clean` restores the real time.
        """
        seconds = float(time) if isinstance(time, int | float) else time.total_seconds()
        if seconds < 0:
            raise ValueError(f"the clock cannot be put back ({seconds} s): clean() brings back the real time")
        self._host.ask("advance", seconds=seconds)

    # Contents

    def topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """Create a topic with Kafka's topic keys. Return its name."""
        configs = {key: str(value) for key, value in (config or {}).items()}
        self._host.ask("create_topic", name=name, partitions=partitions, configs=configs)
        return name

    def requests(self) -> list[Request]:
        """Return the last requests (`requests.KEPT` at most) since the start or `clean`, the oldest first."""
        return [Request(*request) for request in self._host.ask("requests")]

    def report(self) -> str:
        """Return the ends of topics and the last requests, as a failed test prints them."""
        from millstream.testing.report import report

        return report(self._host)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection during imports, where it takes a tenth of the time and frees nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _host(config: Mapping[str, object], in_process: bool, folder: Path | str | None) -> Host:
    keeps = folder is not None
    # Resolved: on macOS the temporary folder is a link, and a broker reports real paths.
    home = Path(folder if folder is not None else _temporary_folder()).resolve()
    if in_process:
        with _no_garbage_collection():
            from millstream.testing.in_process import ThreadHost
        return ThreadHost(home, config, keeps=keeps)
    from millstream.testing.process import ProcessHost

    return ProcessHost(home, config, keeps=keeps)


def _temporary_folder() -> Path:
    """Create a temporary directory for this user alone, without the slow import of `tempfile`."""
    folder = Path(os.environ.get("TMPDIR") or "/tmp", f"millstream-{os.urandom(8).hex()}")
    folder.mkdir(0o700)
    return folder

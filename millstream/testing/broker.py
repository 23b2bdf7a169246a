"""The broker as a test holds it: where it is, what it contains, and what can befall it."""

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
    """Kafka for a test, as a context manager or by `start` and `stop`.

    `config`: Kafka's keys, on top of `settings.DEFAULTS`. `in_process`: a thread of this process instead of a
    process. `folder`: where data and output are; a temporary folder that goes in the end unless it is given.
    `faults`: what can be done to its clients.

    BrokerError where it does not start or cannot do what it is asked.
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
        """Start, or after `kill` start again, at the same address with the same data."""
        self._host.folder.mkdir(parents=True, exist_ok=True)
        self._host.start()
        return self

    def stop(self) -> None:
        """End it. A temporary folder goes with it."""
        self._close_client()
        self._host.stop()

    def clean(self) -> None:
        """Have everything as new: no topics, groups, transactional ids, faults; the real time.

        Clients stay connected, unless the clock, the disk or the broker's settings were touched, or it was
        killed: then it begins anew, at the same address.
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
        """Where its data and its output are."""
        return self._host.folder

    @property
    def in_process(self) -> bool:
        """Whether it runs in this process."""
        return self._host.in_process

    @property
    def log(self) -> str:
        """What it has said, if it is a process; of a thread see Python's logging."""
        return self._host.log

    # What befalls it

    def restart(self) -> None:
        """Stop cleanly and start again: connections are lost, the data stays, a full disk has room again."""
        self._host.resume()
        if self._host.is_running:
            self._host.ask("restart")
        else:
            self._host.start()

    def kill(self) -> None:
        """End the process by SIGKILL; `start` brings it back. BrokerError with `in_process`."""
        self._host.kill()

    def pause(self) -> None:
        """Have it stand still: connections stay, nothing is answered, until `resume`."""
        self._host.pause()

    def resume(self) -> None:
        """End a pause."""
        self._host.resume()

    def advance(self, time: timedelta | float) -> None:
        """Put the broker's clock forward, by a timedelta or seconds; it goes on from there by itself.

        Sessions of groups and transactions whose time is over end (transactions within a second), retention
        is applied before this returns. The real time comes back with `clean`.
        """
        seconds = float(time) if isinstance(time, int | float) else time.total_seconds()
        if seconds < 0:
            raise ValueError(f"the clock cannot be put back ({seconds} s): clean() brings back the real time")
        self._host.ask("advance", seconds=seconds)

    # Contents

    def topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """Create a topic, with Kafka's topic keys; its name."""
        configs = {key: str(value) for key, value in (config or {}).items()}
        self._host.ask("create_topic", name=name, partitions=partitions, configs=configs)
        return name

    def requests(self) -> list[Request]:
        """The last requests (`requests.KEPT` at most) since the start or `clean`, the oldest first."""
        return [Request(*request) for request in self._host.ask("requests")]

    def report(self) -> str:
        """Where topics end, and the last requests: what a failed test prints."""
        from millstream.testing.report import report

        return report(self._host)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """What imports make stays: looking for garbage in it again and again takes a tenth of their time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _host(config: Mapping[str, object], in_process: bool, folder: Path | str | None) -> Host:
    keeps = folder is not None
    # Resolved: on macOS the temporary folder is a link, and a broker tells of real names.
    home = Path(folder if folder is not None else _temporary_folder()).resolve()
    if in_process:
        with _no_garbage_collection():
            from millstream.testing.in_process import ThreadHost
        return ThreadHost(home, config, keeps=keeps)
    from millstream.testing.process import ProcessHost

    return ProcessHost(home, config, keeps=keeps)


def _temporary_folder() -> Path:
    """A new one, for us alone; `tempfile` makes the same, but its import takes as long as ten of ours."""
    folder = Path(os.environ.get("TMPDIR") or "/tmp", f"millstream-{os.urandom(8).hex()}")
    folder.mkdir(0o700)
    return folder

"""The issuer's keys: read from a file or fetched from a URL, and read again while the broker runs.

Keys are read in a thread, one reading at a time. If that fails, the last keys stay in force. A login
whose key is unknown waits for a new reading, which begins at most every `EXPEDITED_SECONDS_MIN`: so peers
cannot have the issuer asked more often.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.parse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_client.security.tls import TlsSettings
from kafka_client.security.web_request import HttpFailed, request
from logd.security.oauthbearer.errors import BadKeySet
from logd.security.oauthbearer.keys import KEY_SET_BYTES_MAX, KeySet

EXPEDITED_SECONDS_MIN: Final = 10.0
WAIT_SECONDS_MAX: Final = 10.0
"""Longest wait of a login for keys."""
FILE_LOOK_MS: Final = 5_000
"""The time between two readings of a file."""

log = logging.getLogger("logd.security")

ReadKeys = Callable[[], bytes]
"""Returns the text of the key set. Blocks. Raises HttpFailed or OSError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshTimes:
    """How often keys are read, in ms (sasl.oauthbearer.jwks.endpoint.*)."""

    refresh_ms: int = 3_600_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


class KeyReader:
    """The keys of one listener, which `run` reads every `times.refresh_ms`.

    `name` is the file or URL, for the log.
    """

    def __init__(self, name: str, read: ReadKeys, times: RefreshTimes) -> None:
        self.times = times
        self.keys = KeySet()
        self._name = name
        self._read = read
        self._text: bytes | None = None
        """The text that `keys` are from."""
        self._reading: asyncio.Task[None] | None = None
        self._read_at = -EXPEDITED_SECONDS_MIN
        """The time of the loop when the last reading ended."""

    def load(self) -> None:
        """Read the keys now. Blocks. Raises BadKeySet, HttpFailed or OSError."""
        self._use(self._read())

    async def run(self) -> None:
        """Read the keys now and then, until this is cancelled. Failures are logged."""
        try:
            while True:
                await asyncio.wait((self._begin(),))
                await asyncio.sleep(self.times.refresh_ms / 1000)
        finally:
            if self._reading is not None:
                self._reading.cancel()

    def refresh_for_key(self) -> Awaitable[None] | None:
        """Return a wait for the reading under way, or for a new one if the last is long enough ago."""
        if self._reading is None:
            if asyncio.get_running_loop().time() - self._read_at < EXPEDITED_SECONDS_MIN:
                return None
            self._begin()
        return self._wait()

    def _begin(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read_again())
            self._reading.add_done_callback(self._ended)
        return self._reading

    async def _wait(self) -> None:
        if self._reading is not None:
            await asyncio.wait((self._reading,), timeout=WAIT_SECONDS_MAX)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._reading = None
        self._read_at = task.get_loop().time()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: reading keys failed", self._name, exc_info=error)

    async def _read_again(self) -> None:
        """Read until it succeeds, or the waits would exceed `retry_backoff_max_ms`."""
        backoff_ms = self.times.retry_backoff_ms
        left_ms = self.times.retry_backoff_max_ms
        while True:
            try:
                text = await asyncio.to_thread(self._read)
                self._use(text)
                return
            except (HttpFailed, OSError, BadKeySet) as error:
                if backoff_ms > left_ms:
                    self._log_failure(error)
                    return
            await asyncio.sleep(backoff_ms / 1000)
            left_ms -= backoff_ms
            backoff_ms *= 2

    def _use(self, text: bytes) -> None:
        if text == self._text:
            return
        self.keys = KeySet.parse(text)
        if self._text is not None:
            log.info("%s: %d new keys for OAUTHBEARER", self._name, len(self.keys))
        self._text = text

    def _log_failure(self, error: Exception) -> None:
        remedy = "the last keys stay in force" if self.keys else "nobody can log in by OAUTHBEARER"
        log.error("%s: no keys, %s: %s", self._name, remedy, error)


def file_of(url: str) -> Path:
    """Return the path in a file URL."""
    return Path(urllib.parse.unquote(urllib.parse.urlsplit(url).path))


def read_file(path: Path) -> bytes:
    """Return a key set's text. Raises OSError."""
    with path.open("rb") as file:
        return file.read(KEY_SET_BYTES_MAX + 1)


def read_url(url: str, tls: TlsSettings | None) -> bytes:
    """Return a key set's text from a web server. Blocks. Raises HttpFailed."""
    return request(url, headers={"Accept": "application/json"}, tls=tls)

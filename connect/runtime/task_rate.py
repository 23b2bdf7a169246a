"""TaskRate: the rate limits of one task, in records and bytes, and how long they have held it up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from connect.config.rate_limit import LIVE_KEYS, RateLimitConfig
from connect.errors import ConfigError
from connect.runtime.sink_rows import bounded
from connect.runtime.token_bucket import TokenBucket
from kafka_client.fetcher.parts import Part
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_SLICE_SECONDS = 1.0
"""How long a task waits at a time before it looks at what else is due."""


class TaskRate:
    """A task's share of its connector's rate limits. `clock` returns monotonic seconds.

    Before its work the task waits while `delay` is above 0; then it counts the work by `take`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, measures_bytes: bool = False) -> None:
        self._clock = clock
        self._measures_bytes = measures_bytes
        self.byte_count = 0
        """Bytes of keys and values so far, if they are measured."""
        self._records = TokenBucket(clock)
        self._bytes = TokenBucket(clock)
        self._changed = asyncio.Event()
        self._followed: tuple[Mapping[str, str], int] = ({}, 0)
        self._throttled_seconds = 0.0
        self._waiting_since: float | None = None

    def follow(
        self,
        connector_config: Mapping[str, str],
        tasks: int,
        resolve: Callable[[Mapping[str, str]], Mapping[str, str]],
    ) -> None:
        """Take the limits of a connector with this number of tasks, if they have changed.

        `resolve` puts values in the place of variables. A limit that is not valid leaves all as they are.
        """
        texts = {key: connector_config[key] for key in sorted(LIVE_KEYS & connector_config.keys())}
        if (texts, tasks) == self._followed:
            return
        self._followed = texts, tasks
        try:
            self._apply(resolve(texts), tasks)
        except ConfigError as e:
            _log.error("the former rate limits stay: %s", e)

    def _apply(self, texts: Mapping[str, str], tasks: int) -> None:
        """Set the limits, each shared by the number of tasks. Raises ConfigError for an invalid one."""
        limits = RateLimitConfig.parse(texts)
        records, size = limits.rate_limit_records_per_second, limits.rate_limit_bytes_per_second
        self._records.change(None if records is None else records / max(tasks, 1))
        self._bytes.change(None if size is None else size / max(tasks, 1))
        self.wake()

    def wake(self) -> None:
        """End a wait early, so that the task looks at what has changed."""
        self._changed.set()

    def take(self, records: int, sizes: Iterable[int]) -> None:
        """Count records and the sizes of their keys and values, which are read only if they matter."""
        self._records.take(records)
        if self._bytes.rate is not None or self._measures_bytes:
            total = sum(sizes)
            self.byte_count += total
            self._bytes.take(total)

    def delay(self) -> float:
        """Return the seconds until the task may go on; 0 for now."""
        return max(self._records.delay(), self._bytes.delay())

    async def wait(self) -> None:
        """Wait until the task may go on, a limit has changed, or a second is over."""
        self._changed.clear()
        seconds = min(self.delay(), _SLICE_SECONDS)
        if seconds <= 0:
            return
        self._waiting_since = self._clock()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            self._throttled_seconds += self._clock() - self._waiting_since
            self._waiting_since = None

    def pieces(self, part: Part) -> Iterator[Part]:
        """Yield what was fetched in pieces of at most the records and bytes of one second."""
        rest = part
        while (most := self._records.rate) is not None and len(rest.records) > (count := max(1, int(most))):
            records = list(rest.records[:count])
            yield from self._byte_pieces(Part(records, records[-1][0] + 1, part.timestamp_type))
            rest = rest._replace(records=rest.records[count:])
        yield from self._byte_pieces(rest)

    def bound(self, records: int, size: int) -> tuple[int, int]:
        """Return these numbers of records and bytes, or those of one second if they are smaller."""
        rates = self._records.rate, self._bytes.rate
        most = [
            limit if rate is None else min(limit, max(1, int(rate)))
            for limit, rate in zip((records, size), rates, strict=True)
        ]
        return most[0], most[1]

    def _byte_pieces(self, part: Part) -> Iterator[Part]:
        rate = self._bytes.rate
        if rate is None:
            yield part
        else:
            yield from bounded(part, max(1, int(rate)))

    def values(self) -> Values:
        """Return the limits, 0 without one, and the time spent waiting for them."""
        waiting = 0.0 if self._waiting_since is None else self._clock() - self._waiting_since
        return {
            "records_per_second_max": self._records.rate or 0,
            "bytes_per_second_max": self._bytes.rate or 0,
            "throttled": float(self._waiting_since is not None),
            "throttle-time-ms-total": (self._throttled_seconds + waiting) * 1000,
        }


def sizes(records: Iterable[Sequence[Any]], key: int) -> Iterator[int]:
    """Yield the bytes of key and value of records whose key has the index `key`, and the value the next."""
    return (len(record[key] or b"") + len(record[key + 1] or b"") for record in records)

"""HttpSource: reads an API page by page. `HttpSourceConfig` declares and documents its settings."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from connect.api import DataError, RetriableError, SourceBatch, SourceConnector, SourceTask
from plugins.http.config import HttpSourceConfig
from plugins.http.documents import at_path, filled
from plugins.http.paging import Paging
from plugins.http.requester import Requester
from plugins.http.secrets import shown_url

_log = logging.getLogger(__name__)
_WAIT_SECONDS_MAX = 0.5
_BACKOFF_SECONDS = 0.5
_BACKOFF_SECONDS_MAX = 60.0


class HttpSourceTask(SourceTask):
    """A task that requests a page per poll."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._requester: Requester | None = None
        self._next_at = 0.0
        self._failures = 0
        self._rounds = 0
        self._value: Any = None
        self._newest: Any = None
        self._page: Any = None

    def start(self, config: Mapping[str, str]) -> None:
        """Go to the page after the last acknowledged one."""
        self._begin(config)
        offset = self.context.offsets.offset(self._partition) or {}
        self._value = offset.get("value", self._config.offset_initial)
        self._newest = offset.get("newest")
        self._page = offset.get("next")
        if offset and self._page is None:
            self._end_round()

    def _begin(self, config: Mapping[str, str]) -> None:
        self._config = HttpSourceConfig.parse(config)
        self._requester = Requester(self._config)
        self._paging = Paging(self._config)
        self._partition = {"url": shown_url(self._config.url)}
        self._value = self._config.offset_initial

    def try_first_page(self, config: Mapping[str, str]) -> None:
        """Request the first page and read it. Raises ConnectError if that does not work."""
        self._begin(config)
        assert self._requester is not None
        try:
            self._request(self._requester)
        finally:
            self.stop()

    def poll(self) -> SourceBatch | None:
        """Return the records of the next page, or None if none is due or the server is away."""
        assert self._requester is not None
        if self._has_ended():
            self.context.finished()
            return None
        waiting = self._next_at - time.monotonic()
        if waiting > 0:
            self._stopping.wait(min(waiting, _WAIT_SECONDS_MAX))
            return None
        if not self._requester.may_send():
            return None
        try:
            batch = self._request(self._requester)
        except RetriableError as e:
            self._failures += 1
            seconds = min(_BACKOFF_SECONDS * 2 ** min(self._failures - 1, 10), _BACKOFF_SECONDS_MAX)
            self._next_at = time.monotonic() + seconds
            _log.warning("%s-%d tries again: %s", self.context.connector, self.context.task_id, e)
            return None
        self._failures = 0
        if self._has_ended():
            self.context.finished()
        return batch

    def statistics(self) -> dict[str, float]:
        """Return the counts of requests and of failed ones."""
        requester = self._requester
        if requester is None:
            return {}
        return {"requests": requester.requests, "failures": requester.failures, "rounds": self._rounds}

    def stop(self) -> None:
        """End waits, and close the connections."""
        self._stopping.set()
        if self._requester is not None:
            self._requester.stop()

    def _has_ended(self) -> bool:
        return 0 <= self._config.iterations <= self._rounds

    def _request(self, requester: Requester) -> SourceBatch | None:
        config, values = self._config, {"offset": self._value}
        url = self._paging.url(self._page)
        params: dict[str, str] | None = None
        if url is None:
            url = filled(config.url, values, lambda text: quote(text, safe=""))
            params = {name: filled(text, values) for name, text in config.prefixed("params.").items()}
            params |= self._paging.params(self._page)
        body = None if config.body is None else filled(config.body, values).encode()
        response = requester.send(
            config.method,
            url,
            params=params or None,
            body=body,
            content_type=None if body is None else "application/json",
        )
        document = _decoded(response.body, url)
        records = self._records(document, url)
        page = self._paging.following(self._page, url, document, response.headers, len(records))
        return self._batch(records, page)

    def _records(self, document: Any, url: str) -> list[Any]:
        records = at_path(document, self._config.records_path)
        if records is None and self._config.records_path:
            return []
        if isinstance(records, list):
            return records
        if self._config.records_path:
            raise DataError(f"{shown_url(url)}: records.path={self._config.records_path} is no list")
        return [records]

    def _batch(self, records: list[Any], page: Any) -> SourceBatch | None:
        """Return the records, with the offset of the next page, and go on to that page."""
        config = self._config
        if config.offset_path:
            for record in records:
                self._newest = _larger(self._newest, at_path(record, config.offset_path))
        self._page = page
        offset = {"value": self._value, "newest": self._newest, "next": page}
        if page is None:
            self._end_round()
            self._rounds += 1
            self._next_at = time.monotonic() + config.poll_interval_ms / 1000
        if not records:
            return None
        keys = None if config.key_path is None else [at_path(r, config.key_path) for r in records]
        return SourceBatch(
            config.topic, records, keys=keys, source_partition=self._partition, source_offset=offset
        )

    def _end_round(self) -> None:
        if self._newest is not None:
            self._value = self._newest


class HttpSource(SourceConnector):
    """The connector of the HTTP source; it has one task, since pages follow each other."""

    CONFIG = HttpSourceConfig
    VERSION = "1"
    task_class = HttpSourceTask

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return False: whether a page has the same records when it is read again is the server's to say."""
        return False

    def check_target(self, config: Mapping[str, str]) -> None:
        """Read the first page."""
        self.task_class().try_first_page(config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one config."""
        return [self.config]


def _decoded(body: bytes, url: str) -> Any:
    try:
        return msgspec.json.decode(body) if body else []
    except msgspec.DecodeError as e:
        raise DataError(f"{shown_url(url)}: the response is no JSON: {e}") from e


def _larger(newest: Any, value: Any) -> Any:
    """Return the larger value; the new one if the two cannot be compared."""
    if value is None or newest is None:
        return newest if value is None else value
    try:
        return max(newest, value)
    except TypeError:
        return value

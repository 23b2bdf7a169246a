"""HttpSink: sends records to an API. `HttpSinkConfig` declares and documents its settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from connect.api import DataError, SinkConnector, SinkRecord, SinkTask, TopicPartition
from plugins.http.config import HttpSinkConfig
from plugins.http.documents import filled
from plugins.http.requester import Refused, Requester

_JSON = "application/json"
_LINES = "application/x-ndjson"
_OF_THE_REQUEST = frozenset((401, 403, 404, 405, 407))
"""Statuses that no other record would change: the credentials, the URL or the method are at fault."""


class HttpSinkTask(SinkTask):
    """A task that sends a batch per request."""

    _requester: Requester | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Make the client."""
        self._config = HttpSinkConfig.parse(config)
        self._requester = Requester(self._config)
        self._sent: dict[tuple[str, int], int] = {}
        """The offset after the last accepted record of a `put` that is made again, by topic and partition."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Send the records. Raises RetriableError if the API cannot take them now.

        The worker calls again with the same records then, and those accepted already are not sent again.
        """
        rest = [r for r in records if r.offset >= self._sent.get((r.topic, r.partition), 0)]
        for batch in self._batches(rest):
            self._send(batch)
            for record in batch:
                self._sent[record.topic, record.partition] = record.offset + 1
        self._sent.clear()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was accepted: the partitions' next owner begins at the committed offsets."""
        self._sent.clear()

    def statistics(self) -> dict[str, float]:
        """Return the counts of requests and of failed ones."""
        requester = self._requester
        return {} if requester is None else {"requests": requester.requests, "failures": requester.failures}

    def stop(self) -> None:
        """End waits, and close the connections."""
        if self._requester is not None:
            self._requester.stop()

    def _batches(self, records: Sequence[SinkRecord]) -> Iterator[list[SinkRecord]]:
        """Yield neighbours with the same URL; a record without a value comes alone."""
        most = 1 if self._config.batch_format == "single" else self._config.batch_max_records
        batch: list[SinkRecord] = []
        url = ""
        for record in records:
            own = self._url(record)
            if batch and (own != url or len(batch) >= most or record.value is None):
                yield batch
                batch = []
            url = own
            if record.value is None:
                yield [record]
            else:
                batch.append(record)
        if batch:
            yield batch

    def _send(self, batch: list[SinkRecord]) -> None:
        """Send a batch; if it is refused, send its records one by one to find those at fault."""
        try:
            self._request(batch)
        except (Refused, DataError) as e:
            if isinstance(e, Refused) and e.status in _OF_THE_REQUEST:
                raise
            if len(batch) == 1:
                self._report(batch[0], e)
                return
            for record in batch:
                self._send([record])

    def _request(self, batch: list[SinkRecord]) -> None:
        assert self._requester is not None
        method: str = self._config.method
        record, body, content_type = batch[0], b"", _JSON
        if record.value is None:
            match self._config.on_null_value:
                case "ignore":
                    return
                case "fail":
                    raise DataError("the record has no value, and on.null.value=fail")
            method = "DELETE"
        else:
            body, content_type = self._body(batch)
        self._requester.wait()
        self._requester.send(method, self._url(record), body=body or None, content_type=content_type)

    def _body(self, batch: list[SinkRecord]) -> tuple[bytes, str]:
        values = [record.value for record in batch]
        try:
            match self._config.batch_format:
                case "array":
                    return msgspec.json.encode(values), _JSON
                case "lines":
                    return b"".join(msgspec.json.encode(value) + b"\n" for value in values), _LINES
            return _single(values[0])
        except (TypeError, OverflowError) as e:
            raise DataError(f"a value cannot be written as JSON: {e}") from e

    def _url(self, record: SinkRecord) -> str:
        key = record.key.decode(errors="replace") if isinstance(record.key, bytes) else record.key
        return filled(
            self._config.url, {"topic": record.topic, "key": key}, lambda text: quote(text, safe="")
        )

    def _report(self, record: SinkRecord, error: Exception) -> None:
        """Report a record that the API refuses (KIP-610). Raises DataError if there is no reporter."""
        place = f"{record.topic}-{record.partition}, offset {record.offset}: {error}"
        reporter = self.context.errant_record_reporter()
        if reporter is None:
            raise DataError(place) from error
        reporter.report(record, DataError(place))


class HttpSink(SinkConnector):
    """The connector of the HTTP sink."""

    CONFIG = HttpSinkConfig
    VERSION = "1"
    task_class = HttpSinkTask


def _single(value: Any) -> tuple[bytes, str]:
    """Return the body of a record alone: bytes and text go as they are."""
    if isinstance(value, bytes):
        return value, "application/octet-stream"
    if isinstance(value, str):
        return value.encode(), "text/plain; charset=utf-8"
    return msgspec.json.encode(value), _JSON

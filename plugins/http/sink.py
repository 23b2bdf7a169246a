"""HttpSink: sends records to an API. `HttpSinkConfig` declares and documents its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from connect.api import ConnectError, DataError, SinkConnector, SinkRecord, SinkTask, TopicPartition
from plugins.http.config import HttpSinkConfig
from plugins.http.documents import filled
from plugins.http.requester import Refused, Requester
from plugins.http.secrets import shown_url

_JSON = "application/json"
_LINES = "application/x-ndjson"
_OF_THE_REQUEST = frozenset((*range(300, 400), 401, 403, 404, 405, 407))
"""Statuses that no other record would change: the credentials, the URL or the method are at fault."""
_CREDENTIALS = frozenset((401, 403, 407))
_ABSENT = frozenset((404, 410))
"""Statuses of a DELETE of what is not there: a record may come twice."""
Place = tuple[str, int, int]
"""Topic, partition and offset that a record was read from, whatever transforms made of it (KIP-793)."""


class HttpSinkTask(SinkTask):
    """A task that sends a batch per request."""

    _requester: Requester | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Make the client."""
        self._config = HttpSinkConfig.parse(config)
        self._requester = Requester(self._config)
        self._done: Counter[Place] = Counter()
        """How many records of a place were accepted or reported by a `put` that has failed since."""

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Send the records. Raises RetriableError if the API cannot take them now.

        The worker calls again with the same records then, and those accepted already are not sent again.
        """
        for batch in self._batches(self._rest(records)):
            self._send(batch)
        for record in records:
            self._done.pop(_place(record), None)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was accepted: the partitions' next owner begins at the committed offsets."""
        for place in [each for each in self._done if TopicPartition(*each[:2]) in partitions]:
            del self._done[place]

    def statistics(self) -> dict[str, float]:
        """Return the counts of requests and of failed ones."""
        requester = self._requester
        return {} if requester is None else {"requests": requester.requests, "failures": requester.failures}

    def stop(self) -> None:
        """End waits, and close the connections."""
        if self._requester is not None:
            self._requester.stop()

    def _rest(self, records: Sequence[SinkRecord]) -> list[SinkRecord]:
        """Return the records that are neither accepted nor reported. One place may have several records."""
        done = Counter(self._done)
        rest = []
        for record in records:
            place = _place(record)
            if done[place]:
                done[place] -= 1
            else:
                rest.append(record)
        return rest

    def _batches(self, records: Sequence[SinkRecord]) -> Iterator[list[SinkRecord]]:
        """Yield neighbours with the same URL; a record without a value or without a URL comes alone."""
        most = 1 if self._config.batch_format == "single" else self._config.batch_max_records
        batch: list[SinkRecord] = []
        url: str | None = ""
        for record in records:
            try:
                own = self._url(record)
            except DataError:  # told when the record is sent
                own = None
            is_alone = record.value is None or own is None
            if batch and (own != url or len(batch) >= most or is_alone):
                yield batch
                batch = []
            url = own
            if is_alone:
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
            else:
                for record in batch:
                    self._send([record])
                return
        self._done.update(map(_place, batch))

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
        url = self._url(record)
        self._requester.wait()
        try:
            self._requester.send(method, url, body=body or None, content_type=content_type)
        except Refused as e:
            if method != "DELETE" or e.status not in _ABSENT:
                raise

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
        """Return the URL of a record. Raises DataError if the record lacks the key that the URL needs."""
        url, key = self._config.url, record.key
        if key in (None, "", b"") and "${key}" in url:
            raise DataError("the record has no key, which url needs: it would go to another place")
        if isinstance(key, bytes):
            key = key.decode(errors="replace")
        elif isinstance(key, (dict, list)):
            key = msgspec.json.encode(key).decode()
        return filled(url, {"topic": record.topic, "key": key}, lambda text: quote(text, safe=""))

    def _report(self, record: SinkRecord, error: Exception) -> None:
        """Report a record that the API refuses (KIP-610). Raises DataError if there is no reporter."""
        topic, partition, offset = _place(record)
        place = f"{topic}-{partition}, offset {offset}: {error}"
        reporter = self.context.errant_record_reporter()
        if reporter is None:
            raise DataError(place) from error
        reporter.report(record, DataError(place))


class HttpSink(SinkConnector):
    """The connector of the HTTP sink."""

    CONFIG = HttpSinkConfig
    VERSION = "1"
    task_class = HttpSinkTask

    def check_target(self, config: Mapping[str, str]) -> None:
        """Send a request HEAD, which changes nothing, to the URL up to the first place for a record's part.

        Raises ConnectError if the server is away or refuses the credentials. Other refusals prove nothing.
        """
        settings = HttpSinkConfig.parse(config)
        url = settings.url.split("${")[0]
        if not urlsplit(url).netloc:
            raise ConnectError(f"{shown_url(settings.url)}: its host is a record's part, nothing to try")
        requester = Requester(settings)
        try:
            requester.send("HEAD", url)
        except Refused as e:
            if e.status in _CREDENTIALS:
                raise
        finally:
            requester.stop()


def _place(record: SinkRecord) -> Place:
    return record.original_topic, record.original_partition, record.original_offset


def _single(value: Any) -> tuple[bytes, str]:
    """Return the body of a record alone: bytes and text go as they are."""
    if isinstance(value, bytes):
        return value, "application/octet-stream"
    if isinstance(value, str):
        return value.encode(), "text/plain; charset=utf-8"
    return msgspec.json.encode(value), _JSON

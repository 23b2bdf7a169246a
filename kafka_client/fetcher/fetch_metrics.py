"""A fetcher's counters per response, by the names of Kafka's `consumer-fetch-manager-metrics`."""

from __future__ import annotations

from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed, in_ms


class FetchMetrics:
    """The metrics of one fetcher. Times are in seconds; records are counted by the headers of their
    batches.
    """

    __slots__ = ("bytes_fetched", "latency", "records_fetched", "requests_sent")

    def __init__(self) -> None:
        self.requests_sent = self.records_fetched = self.bytes_fetched = 0
        self.latency = Windowed()
        """The time from a request to its response, including the broker's long poll."""

    def record(self, records: int, size: int) -> None:
        """Count records and bytes of a partition that were returned."""
        self.records_fetched += records
        self.bytes_fetched += size

    def values(self, *, lag_max: int) -> Values:
        """Return the values by Kafka's names, with times in milliseconds."""
        return {
            "fetch-total": self.requests_sent,
            "records-consumed-total": self.records_fetched,
            "bytes-consumed-total": self.bytes_fetched,
            **in_ms("fetch-latency", self.latency),
            "records-lag-max": lag_max,
        }

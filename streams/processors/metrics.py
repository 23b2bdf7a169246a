"""Counters of one node of one task; read at any time, summed by the application."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafka_client.metrics.windowed import Windowed


@dataclass(slots=True)
class NodeMetrics:
    """Plain numbers. Sources and sinks count every record, other nodes only what they drop.

    `process_total`: records in (source) or out (sink). `dropped_records_total`: records left out, for a null
    key or value, bytes that do not fit, or lateness. `late_records_total`: the late ones among them.
    `record_e2e_latency`: of sources, ms from a record's time to its processing; of each batch its last record
    (KIP-613).
    """

    process_total: int = 0
    dropped_records_total: int = 0
    late_records_total: int = 0
    record_e2e_latency: Windowed | None = field(default=None, repr=False, compare=False)

    def dropped(self, records: int = 1) -> None:
        """Count records that were left out."""
        self.dropped_records_total += records

    def late(self) -> None:
        """Count one record left out because its window is over."""
        self.dropped_records_total += 1
        self.late_records_total += 1

    def add(self, other: NodeMetrics) -> None:
        """Sum up the counts."""
        self.process_total += other.process_total
        self.dropped_records_total += other.dropped_records_total
        self.late_records_total += other.late_records_total


@dataclass(slots=True)
class BufferMetrics:
    """How many updates a `suppress` holds back, and bytes of them, as of each commit."""

    count: Windowed = field(default_factory=Windowed)
    size: Windowed = field(default_factory=Windowed)

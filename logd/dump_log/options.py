"""The options of the command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from logd.dump_log.decoders import Decoder, decode_plain

UNLIMITED: Final = 2**31 - 1
MESSAGE_SIZE_MAX: Final = 5 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of Kafka's tool that say how files are printed."""

    decoder: Decoder = decode_plain
    """Converts key and payload of a record to text."""
    deep_iteration: bool = False
    """Print records, not only batches."""
    print_data_log: bool = False
    """Print keys and payloads too; implies `deep_iteration`."""
    skip_record_metadata: bool = False
    """Print only key and payload of records."""
    index_sanity_check: bool = False
    """Only check what a starting broker checks in an index."""
    verify_index_only: bool = False
    """Check indexes against the log without printing them."""
    max_message_size: int = MESSAGE_SIZE_MAX
    """Bytes of the log to read for the batch of an index entry."""
    max_bytes: int = UNLIMITED
    """Bytes to read of each log file."""

    @property
    def deep(self) -> bool:
        """True if records are read, not only batches."""
        return self.deep_iteration or self.print_data_log

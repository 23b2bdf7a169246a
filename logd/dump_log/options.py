"""What the command was asked for."""

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
    """Key and payload of a record as text."""
    deep_iteration: bool = False
    """Print records, not only batches."""
    print_data_log: bool = False
    """Print keys and payloads too; implies `deep_iteration`."""
    skip_record_metadata: bool = False
    """Of records print nothing but key and payload."""
    index_sanity_check: bool = False
    """Of indexes check only what a broker checks when it starts."""
    verify_index_only: bool = False
    """Check indexes against the log without printing them."""
    max_message_size: int = MESSAGE_SIZE_MAX
    """Bytes read of the log to find the batch an index entry points to."""
    max_bytes: int = UNLIMITED
    """Bytes read of each log file."""

    @property
    def deep(self) -> bool:
        """Whether records are looked at."""
        return self.deep_iteration or self.print_data_log

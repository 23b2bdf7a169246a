"""The memory that an application's RocksDB databases share: one block cache, one budget of write buffers.

Blocks of data, of indexes and of bloom filters are in the cache, the last two divided so that parts of them
may leave it. What was written and is not in files yet is in the write buffers. A database may go beyond the
budget with the batch it is writing, which is a commit's changes to a store.

RocksDB has the database that writes make room, however little it has: behind stores that were written and
then left alone, a busy one would write a file with each commit. So the one that holds the most has a turn.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from weakref import ref

if TYPE_CHECKING:
    from rocksdict import BlockBasedOptions, Cache, Options, WriteBufferManager

BLOCK_CACHE_BYTES = 128 * 1024 * 1024
WRITE_BUFFER_BYTES = 64 * 1024 * 1024

MEMTABLE_BYTES = 8 * 1024 * 1024
"""A store's write buffer is written to a file at that size: so much a restart after a kill restores again."""
ARENA_BYTES = 64 * 1024
"""What a write buffer grows by: an application may have hundreds of stores with little in them."""
PARTITION_BYTES = 4096
"""Of a part of an index, or of a bloom filter."""
OPEN_FILES = 256
BLOOM_BITS = 10
_WRITTEN_OUT_AT = 7 / 8
"""The share of the budget at which RocksDB has a database make room."""


class Database(Protocol):
    """One of those that share the memory; its calls fail once it is closed."""

    def buffered_bytes(self) -> int:
        """What it holds that `make_room` would have written to a file."""
        ...

    def make_room(self) -> None:
        """Write nothing to it: RocksDB has it make room then, if the budget is exceeded."""
        ...


class RocksMemory:
    """``block_cache_bytes``, ``write_buffer_bytes``: the bounds of both, all databases together.

    Nothing is imported from rocksdict before the first database needs it.
    """

    def __init__(
        self,
        *,
        block_cache_bytes: int = BLOCK_CACHE_BYTES,
        write_buffer_bytes: int = WRITE_BUFFER_BYTES,
    ) -> None:
        self.block_cache_bytes = block_cache_bytes
        self.write_buffer_bytes = write_buffer_bytes
        self._databases: list[ref[Database]] = []

    @cached_property
    def block_cache(self) -> Cache:
        """Of blocks, indexes and filters."""
        from rocksdict import Cache

        return Cache(self.block_cache_bytes)

    @cached_property
    def write_buffers(self) -> WriteBufferManager:
        """Counts the write buffers. Nobody is made to wait: a store alone would wait for others' files."""
        from rocksdict import WriteBufferManager

        return WriteBufferManager(self.write_buffer_bytes, False)

    def apply_to(self, options: Options) -> None:
        """Have a column family take its memory from here."""
        memtable = max(min(MEMTABLE_BYTES, self.write_buffer_bytes // 2), ARENA_BYTES)
        options.optimize_universal_style_compaction(memtable * 4)
        options.set_write_buffer_size(memtable)
        options.set_write_buffer_manager(self.write_buffers)
        options.set_min_write_buffer_number_to_merge(1)
        options.set_max_write_buffer_number(3)
        options.set_arena_block_size(ARENA_BYTES)
        options.set_max_open_files(OPEN_FILES)
        options.set_block_based_table_factory(self._table())

    def _table(self) -> BlockBasedOptions:
        from rocksdict import BlockBasedIndexType, BlockBasedOptions

        table = BlockBasedOptions()
        table.set_block_cache(self.block_cache)
        table.set_bloom_filter(BLOOM_BITS, False)
        table.set_cache_index_and_filter_blocks(True)
        table.set_index_type(BlockBasedIndexType.two_level_index_search())
        table.set_partition_filters(True)
        table.set_metadata_block_size(PARTITION_BYTES)
        table.set_pin_top_level_index_and_filter(True)
        return table

    def add(self, database: Database) -> None:
        """A database is open; it need not be kept for this."""
        self._databases.append(ref(database))

    def remove(self, database: Database) -> None:
        """A database is about to be closed."""
        with suppress(ValueError):  # it did not open
            self._databases.remove(ref(database))

    def written(self, database: Database) -> None:
        """Something was written to it; called in any thread."""
        if self.write_buffers.get_usage() <= self.write_buffer_bytes * _WRITTEN_OUT_AT:
            return
        largest, most = database, 0
        for each in tuple(self._databases):
            if (found := each()) is not None:
                with suppress(Exception):  # closed in another thread meanwhile
                    if (held := found.buffered_bytes()) > most:
                        largest, most = found, held
        if largest is not database:
            with suppress(Exception):  # as above; what cannot be written is its own store's to say
                largest.make_room()

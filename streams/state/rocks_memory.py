"""The memory that an application's RocksDB databases share: one block cache, one budget of write buffers.

The cache holds blocks of data, indexes and bloom filters; indexes and filters are divided so that parts of
them may be evicted. Write buffers hold the data that is not in files yet. A database may exceed the budget
with the batch it is writing, which is a commit's changes to a store.

RocksDB has the database that is writing make room, however small its buffer is. While idle stores hold most
of the budget, a busy one would write a file with each commit. So here the one with the largest buffer does.
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
"""The size at which a write buffer is written to a file; a restart after a kill restores that much."""
ARENA_BYTES = 64 * 1024
"""The unit by which a write buffer grows: an application may have hundreds of nearly empty stores."""
PARTITION_BYTES = 4096
"""The size of a part of an index, or of a bloom filter."""
OPEN_FILES = 256
BLOOM_BITS = 10
_WRITTEN_OUT_AT = 7 / 8
"""The share of the budget at which RocksDB has a database make room."""


class Database(Protocol):
    """A database that shares the memory; its methods fail once it is closed."""

    def buffered_bytes(self) -> int:
        """Return the buffered bytes that `make_room` would have written to a file."""
        ...

    def make_room(self) -> None:
        """Write an empty batch, so that RocksDB has this database make room if the budget is exceeded."""
        ...


class RocksMemory:
    """The memory of all databases, bounded by ``block_cache_bytes`` and ``write_buffer_bytes``.

    rocksdict is not imported before the first database needs it.
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
        """The cache of blocks, indexes and filters."""
        from rocksdict import Cache

        return Cache(self.block_cache_bytes)

    @cached_property
    def write_buffers(self) -> WriteBufferManager:
        """The counter of the write buffers' memory. Writers never wait: they would wait for others' files."""
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
        """Register an open database; only a weak reference is kept."""
        self._databases.append(ref(database))

    def remove(self, database: Database) -> None:
        """Remove a database that is about to be closed."""
        with suppress(ValueError):  # it did not open
            self._databases.remove(ref(database))

    def written(self, database: Database) -> None:
        """Have the database with the largest buffer make room, if the budget is nearly used up.

        Called after each write to ``database``, in any thread.
        """
        if self.write_buffers.get_usage() <= self.write_buffer_bytes * _WRITTEN_OUT_AT:
            return
        largest, most = database, 0
        for reference in tuple(self._databases):
            if (other := reference()) is not None:
                with suppress(Exception):  # closed in another thread meanwhile
                    if (buffered := other.buffered_bytes()) > most:
                        largest, most = other, buffered
        if largest is not database:
            with suppress(Exception):  # closed, or not writable: its own store's next call raises the error
                largest.make_room()

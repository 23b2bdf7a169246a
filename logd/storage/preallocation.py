"""Allocation of a segment's room on the disk before its bytes arrive (the topic setting ``preallocate``).

The file's size stays the number of written bytes. With Kafka it does not, so Kafka has to truncate zeros
again. Recovery, retention and copies of a log see no difference. If the system cannot do it, nothing is
allocated.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING

from logd.storage.disk import File

if TYPE_CHECKING:
    import ctypes

FALLOC_FL_KEEP_SIZE = 1

logger = logging.getLogger(__name__)


def preallocate(file: File, size: int) -> None:
    """Allocate ``size`` bytes on the disk for the file, if there is room."""
    function = _fallocate()
    if function is not None and function(file.descriptor.fileno(), FALLOC_FL_KEEP_SIZE, 0, size) != 0:
        logger.debug("%d bytes were not preallocated", size)


@cache
def _fallocate() -> ctypes._NamedFuncPointer | None:
    """Return Linux' fallocate; None elsewhere. The os module only has posix_fallocate, which enlarges
    files.
    """
    import ctypes  # imported only if a topic uses it

    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (AttributeError, OSError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function

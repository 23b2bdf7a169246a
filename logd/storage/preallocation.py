"""Room on the disk for a segment before its bytes come (the topic setting ``preallocate``).

The file's size stays what was written, unlike with Kafka, which has to cut the zeros off again: recovery,
retention and whoever copies a log see no difference. Where the system cannot do it, nothing is allocated.
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
    """Have ``size`` bytes for the file on the disk, if there is room."""
    function = _fallocate()
    if function is not None and function(file.descriptor.fileno(), FALLOC_FL_KEEP_SIZE, 0, size) != 0:
        logger.debug("%d bytes were not preallocated", size)


@cache
def _fallocate() -> ctypes._NamedFuncPointer | None:
    """Linux' fallocate; None elsewhere. The os module has only posix_fallocate, which makes files larger."""
    import ctypes  # only where a topic asks for it

    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (AttributeError, OSError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function

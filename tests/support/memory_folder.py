"""A folder in memory, for state that is synced often and that nobody looks at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = Path("/dev/shm")


@contextmanager
def memory_folder(otherwise: Path) -> Iterator[Path]:
    """Make a folder in memory and remove it in the end. Yield `otherwise` without such a file system."""
    if os.access(_MEMORY, os.W_OK):
        with TemporaryDirectory(
            dir=_MEMORY, prefix="millstream-tests-", ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)
    else:
        yield otherwise

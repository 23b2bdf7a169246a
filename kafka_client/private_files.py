"""The permissions of what daemons write: the group may read it, others may do nothing (`rwxr-x---`)."""

from __future__ import annotations

import os

DIRECTORY_MODE = 0o750
FILE_MODE = 0o640
_UMASK = 0o027


def hide_from_others() -> None:
    """Have this process make files that others cannot read. A stricter umask stays."""
    before = os.umask(_UMASK)
    os.umask(before | _UMASK)

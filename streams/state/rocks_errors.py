"""Translation of RocksDB's errors, which are only text, into errors that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from streams.errors import StateCorrupted, StateError, StateFolderLocked

OnDamage = Literal["restore", "restart", "end"]
"""The consequence of damage to a store.

``restore``: the reader closes the store after the error, then opens and restores it. ``restart``: the store
is restored at the application's next start. ``end``: there is no changelog to restore the store from, so
that only the user may delete it.
"""

_FULL = ("No space left", "File too large", "Disk quota exceeded")
_FILES = "Too many open files"
_LOCKED = ("lock hold by current process", "While lock file")
_REMEDIES = {
    "restore": "it is set aside, and restored from the changelog",
    "restart": "started again, the application sets it aside and reads it anew from its topic",
    "end": "the store has no changelog to restore it from; remove the folder to have it begin empty",
}


def is_damage(error: Exception) -> bool:
    """Return True if an error says that files are corrupt or missing."""
    text = str(error)
    # All of RocksDB's errors are of the class Exception itself.
    return type(error) is Exception and (text.startswith("Corruption") or "No such file" in text)


def translated(path: Path, error: Exception, on_damage: OnDamage) -> Exception:
    """Return the error to raise in place of one of RocksDB or of the system; any other unchanged."""
    if isinstance(error, OSError):
        return StateError(f"{path} cannot be used: {error}")
    if type(error) is not Exception:
        return error
    text = str(error)
    if any(each in text for each in _LOCKED):
        return StateFolderLocked(
            f"{path} is open in another process: end that one, or give this one its own state_dir ({text})"
        )
    if is_damage(error):
        kind = StateCorrupted if on_damage == "restore" else StateError
        return kind(f"{path} is damaged: {_REMEDIES[on_damage]} ({text})")
    if any(each in text for each in _FULL):
        return StateError(
            f"{path} cannot be written, there is no room: make some and start the application again, which "
            f"goes on from its last commit ({text})"
        )
    if _FILES in text:
        return StateError(
            f"{path}: too many files are open: raise the limit of the process, ulimit -n ({text})"
        )
    return StateError(
        f"{path}: RocksDB fails ({text}); if it goes on to, remove the folder to restore the store"
    )

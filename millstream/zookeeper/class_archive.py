"""Archives of Java classes in the format of a virtual machine, kept for later processes.

ZooKeeper spends most of its start on reading and checking classes. With an archive of them (JEP 350) the
start takes two fifths of the time. The first process that ends cleanly writes the archive. A virtual machine
ignores an archive of other classes or of another Java.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
from contextlib import suppress
from functools import cached_property
from pathlib import Path

FOLDER = "MILLSTREAM_CLASS_ARCHIVES"
"""The environment variable with the folder of archives; empty: no archives are used."""
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Options that silence warnings about an archive that does not match."""


class ClassArchive:
    """The archive of loaded classes (class data sharing) of a class path, which makes Java start faster.

    The archive's name is a hash of the class path's files, with their sizes and times, and of Java's version.
    """

    def __init__(self, name: str, class_path: str) -> None:
        self._name, self._class_path = name, class_path

    @cached_property
    def path(self) -> Path | None:
        """The archive's file, or None if archives are disabled.

        Its first computation reads the sizes and times of hundreds of jars.
        """
        folder = _folder()
        return None if folder is None else folder / f"{self._name}-{_digest(self._class_path)}.jsa"

    @property
    def is_missing(self) -> bool:
        """True if archives are enabled and this one does not exist."""
        return self.path is not None and not self.path.exists()

    def use(self) -> tuple[str, ...]:
        """Return the options of the virtual machine to use the archive, if it exists."""
        if self.path is None or self.is_missing:
            return ()
        return (*_QUIET, f"-XX:SharedArchiveFile={self.path}")

    def use_or_write(self, draft: Path) -> tuple[str, ...]:
        """Return the options to use the archive, or else to write it to `draft` at the end, for `keep`."""
        return (*_QUIET, f"-XX:ArchiveClassesAtExit={draft}") if self.is_missing else self.use()

    def keep(self, draft: Path) -> None:
        """Install the draft of a process that has ended cleanly.

        If that fails, later processes start more slowly.
        """
        if self.path is None or not draft.exists():
            return
        mine = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(draft, mine)
            mine.replace(self.path)
        except OSError:
            with suppress(OSError):
                mine.unlink()
        draft.unlink()


def _folder() -> Path | None:
    named = os.environ.get(FOLDER)
    if named is not None:
        return Path(named) if named else None
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream"
    except RuntimeError:  # the home directory is unknown
        return None


def _digest(class_path: str) -> str:
    java = Path(shutil.which("java") or "java").resolve()
    files = [path for part in class_path.split(os.pathsep) for path in sorted(glob.glob(_jars(part)))]
    digest = hashlib.sha256()
    for path in (str(java), *files):
        with_times = os.stat(path) if os.path.exists(path) else None
        facts = (path, None) if with_times is None else (path, with_times.st_size, with_times.st_mtime_ns)
        digest.update(repr(facts).encode())
    return digest.hexdigest()[:16]


def _jars(part: str) -> str:
    """Return the glob pattern of a part of a class path; a final star means all jars of a folder."""
    return part + ".jar" if part.endswith("*") else glob.escape(part)

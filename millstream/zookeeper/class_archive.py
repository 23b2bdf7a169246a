"""Java classes as a virtual machine has them in memory, kept from one process for those that come later.

Reading and checking classes is most of what a server of ZooKeeper does as it starts: with an archive of them
(JEP 350) it takes two fifths of the time. The first process that ends orderly writes one. A virtual machine
that finds it to be of other classes, or of another machine, starts without it.
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
"""The environment's variable that names the folder of archives; empty: there are none."""
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Whatever does not fit is only slower."""


class ClassArchive:
    """Of one class path: the archive's name goes by what its files are now, and by which java there is."""

    def __init__(self, name: str, class_path: str) -> None:
        self._name, self._class_path = name, class_path

    @cached_property
    def path(self) -> Path | None:
        """The file; None where there are to be none. Hundreds of jars are looked at for it."""
        folder = _folder()
        return None if folder is None else folder / f"{self._name}-{_digest(self._class_path)}.jsa"

    @property
    def is_missing(self) -> bool:
        """Whether there is to be one, and is none yet."""
        return self.path is not None and not self.path.exists()

    def use(self) -> tuple[str, ...]:
        """Options of the virtual machine by which it uses the archive, if there is one."""
        if self.path is None or self.is_missing:
            return ()
        return (*_QUIET, f"-XX:SharedArchiveFile={self.path}")

    def use_or_write(self, draft: Path) -> tuple[str, ...]:
        """Or else has one written as ``draft`` at its end, for `keep`."""
        return (*_QUIET, f"-XX:ArchiveClassesAtExit={draft}") if self.is_missing else self.use()

    def keep(self, draft: Path) -> None:
        """Take in what a process wrote that has ended orderly. Where that cannot be, others start slowly."""
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
    except RuntimeError:  # nobody's home is known
        return None


def _digest(class_path: str) -> str:
    java = Path(shutil.which("java") or "java").resolve()
    files = [path for part in class_path.split(os.pathsep) for path in sorted(glob.glob(_jars(part)))]
    told = hashlib.sha256()
    for path in (str(java), *files):
        with_times = os.stat(path) if os.path.exists(path) else None
        facts = (path, None) if with_times is None else (path, with_times.st_size, with_times.st_mtime_ns)
        told.update(repr(facts).encode())
    return told.hexdigest()[:16]


def _jars(part: str) -> str:
    """As java reads a class path: a star stands for all jars of a folder."""
    return part + ".jar" if part.endswith("*") else glob.escape(part)

"""The doctor's look at who may read what a broker keeps secret."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from logd.config.security_keys import LISTENER_PREFIX
from millstream.commands.doctor.finding import OK, WARNING, Finding
from millstream.commands.doctor.settings import CheckedSettings

_SECRET_ENDS = (".password", ".jaas.config", "ssl.keystore.key")


def permissions(settings: CheckedSettings) -> Iterator[Finding]:
    """Check that other users of this machine can read no records, keys and passwords."""
    for folder in settings.log_dirs:
        if folder.is_dir():
            yield _checked(folder, "records", 0o750)
    for key, value in settings.properties.items():
        plain = (
            key.removeprefix(LISTENER_PREFIX).partition(".")[2] if key.startswith(LISTENER_PREFIX) else key
        )
        if plain == "ssl.keystore.location" and Path(value).is_file():
            yield _checked(Path(value), "the private key", 0o640)
    if settings.file is not None and any(
        key.endswith(_SECRET_ENDS) and value for key, value in settings.properties.items()
    ):
        yield _checked(settings.file, "passwords", 0o640)


def _checked(path: Path, what: str, mode: int) -> Finding:
    name = f"permissions {path}"
    mode_now = stat.S_IMODE(path.stat().st_mode)
    if mode_now & 0o007:
        detail = f"{mode_now:o}: every user of this machine gets at {what}"
        return Finding(name, WARNING, detail, f"chmod {mode:o} {path}")
    return Finding(name, OK, f"{mode_now:o}")

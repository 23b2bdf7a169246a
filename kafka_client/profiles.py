"""Named clusters: a properties file each, with Kafka's keys, in the user's settings folder.

    $XDG_CONFIG_HOME/millstream/profiles/NAME.properties   bootstrap.servers and the client's other keys
    $XDG_CONFIG_HOME/millstream/default-profile            the name of the profile used without --profile

Files are only readable by their owner, since they contain passwords.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kafka_client.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_SUFFIX = ".properties"
SERVERS = "bootstrap.servers"
"""The key of a cluster's addresses."""
SERVERS_VARIABLE = "KAFKA_BOOTSTRAP_SERVERS"
"""The environment variable with addresses, used if nothing else names a cluster."""
DEFAULT_SERVERS = "localhost:9092"
"""The default address of logd."""


def settings_folder() -> Path:
    """Return the folder of the user's Millstream settings, by XDG's rules."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "millstream"


def profile_path(name: str) -> Path:
    """Return the path of a profile's file, which need not exist; raises ConfigError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise ConfigError("--profile", name, "a name has letters, digits, '.', '_' and '-', 64 at most")
    return settings_folder() / "profiles" / f"{name}{_SUFFIX}"


def known_profiles() -> list[str]:
    """Return the names of all profiles, sorted."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in settings_folder().glob(f"profiles/*{_SUFFIX}"))


def read_profile(name: str) -> dict[str, str]:
    """Return a profile's keys; raises ConfigError if it does not exist."""
    from kafka_client.java_properties import read_properties

    path = profile_path(name)
    if not path.exists():
        names = ", ".join(known_profiles()) or "none yet: millstream profile set"
        raise ConfigError("--profile", name, f"there is no such profile (known: {names})")
    return read_properties(path, "--profile")


def write_profile(name: str, properties: Mapping[str, str]) -> None:
    """Write a profile's file, readable only by its owner."""
    import tempfile

    from kafka_client.java_properties import format_properties

    path = profile_path(name)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{name}.")  # Its mode is 0600.
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(format_properties(properties))
        Path(fresh).replace(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise


def delete_profile(name: str) -> None:
    """Delete a profile; if it was the default, there is no default any more."""
    profile_path(name).unlink(missing_ok=True)
    if _made_default() == name:
        make_default(None)


def default_profile() -> str | None:
    """Return the profile that is used if none is named: MILLSTREAM_PROFILE's, or the default; None without
    one.
    """
    if named := os.environ.get("MILLSTREAM_PROFILE"):
        return named
    return _made_default()


def _made_default() -> str | None:
    try:
        return (settings_folder() / "default-profile").read_text().strip() or None
    except FileNotFoundError:
        return None


def make_default(name: str | None) -> None:
    """Make `name` the default profile; None for no default."""
    path = settings_folder() / "default-profile"
    if name is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name + "\n")

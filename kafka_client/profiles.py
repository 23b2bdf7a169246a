"""Named clusters: a properties file each, with Kafka's keys, in the user's folder of settings.

    $XDG_CONFIG_HOME/millstream/profiles/NAME.properties   bootstrap.servers and the client's other keys
    $XDG_CONFIG_HOME/millstream/default-profile            the name of the one taken without --profile

Files are for their owner's eyes alone, since passwords stand in them.
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
"""The environment's variable with addresses, taken where nothing else names a cluster."""
DEFAULT_SERVERS = "localhost:9092"
"""Where logd listens if nothing else is said."""


def settings_folder() -> Path:
    """Where the user's settings of Millstream are: XDG's folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "millstream"


def profile_path(name: str) -> Path:
    """The file of a profile, whether it is there or not; ConfigError for what cannot be a profile's name."""
    if not _NAME.fullmatch(name):
        raise ConfigError("--profile", name, "a name has letters, digits, '.', '_' and '-', 64 at most")
    return settings_folder() / "profiles" / f"{name}{_SUFFIX}"


def known_profiles() -> list[str]:
    """Names of all profiles, sorted."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in settings_folder().glob(f"profiles/*{_SUFFIX}"))


def read_profile(name: str) -> dict[str, str]:
    """A profile's keys; ConfigError where there is no such one."""
    from kafka_client.java_properties import read_properties

    path = profile_path(name)
    if not path.exists():
        known = ", ".join(known_profiles()) or "none yet: millstream profile set"
        raise ConfigError("--profile", name, f"there is no such profile (known: {known})")
    return read_properties(path, "--profile")


def write_profile(name: str, properties: Mapping[str, str]) -> None:
    """Write a profile whole, for its owner's eyes alone."""
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
    """Delete a profile; if it was the default, there is none any more."""
    profile_path(name).unlink(missing_ok=True)
    if _made_default() == name:
        make_default(None)


def default_profile() -> str | None:
    """The profile taken where none is named: of MILLSTREAM_PROFILE, or the one made the default."""
    if named := os.environ.get("MILLSTREAM_PROFILE"):
        return named
    return _made_default()


def _made_default() -> str | None:
    try:
        return (settings_folder() / "default-profile").read_text().strip() or None
    except FileNotFoundError:
        return None


def make_default(name: str | None) -> None:
    """Have `name` taken where no profile is named; None for no profile."""
    path = settings_folder() / "default-profile"
    if name is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name + "\n")

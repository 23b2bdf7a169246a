"""`millstream user bootstrap`: from options to the users that logd stores."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path

from logd.broker.first_users import set_in_log_dirs, set_in_zookeeper
from logd.config.load import load_config
from logd.metadata.controller.scram import Upsertion
from logd.security.scram_credential import BY_LABEL, SALT_BITS, salt_of
from millstream.terminal.command import run_loop


def run(
    file: Path | None,
    overrides: Sequence[str],
    user: str,
    mechanisms: Sequence[str],
    password: str,
    iterations: int,
) -> str:
    """Set the user's credentials, and return where. Raises KafkaError, StorageError or ZooKeeperError."""
    config = load_config(file, overrides).config
    upsertions = [_upsertion(user, each, password, iterations) for each in mechanisms]
    if config.is_clustered:
        return run_loop(set_in_zookeeper(config, upsertions))
    return run_loop(set_in_log_dirs(config, upsertions))


def _upsertion(user: str, mechanism: str, password: str, iterations: int) -> Upsertion:
    salt = salt_of(secrets.randbits(SALT_BITS))
    hashed = BY_LABEL[mechanism]
    return Upsertion(
        user=user,
        mechanism=hashed.number,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(hashed.hash_name, password.encode(), salt, max(iterations, 1)),
    )

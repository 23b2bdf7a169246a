"""Users' SCRAM credentials: their changes and their description (KIP-554), with Kafka's errors.

A user may be named once in a request, as by Kafka's ScramControlManager. A user with an error keeps all
credentials as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.controller.decision import Decision
from logd.metadata.image import Change, ClusterImage, user_configs
from logd.security.scram_credential import (
    BY_LABEL,
    BY_NUMBER,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    BadCredential,
    ScramCredential,
    ScramMechanism,
)

USER_LENGTH_MAX: Final = 1_000
SALT_BYTES_MAX: Final = 1_024
"""Bounds that Kafka does not have: a write that ZooKeeper cannot take would end the controller's term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsertion:
    """A credential to set; `mechanism` is its number in requests."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A credential to delete; `mechanism` is its number in requests."""

    user: str
    mechanism: int


Altered = dict[str, KafkaError | None]
"""The error of each user that a request names, or None."""


def alter_credentials(
    image: ClusterImage,
    deletions: Sequence[Deletion],
    upsertions: Sequence[Upsertion],
    *,
    decoy_key: Callable[[], bytes] | None = None,
) -> Decision[Altered]:
    """Return the changes of users without an error; an error of one user does not affect others.

    `decoy_key` makes the secret that a standalone broker needs with its first user.
    """
    alterations: list[Deletion | Upsertion] = [*deletions, *upsertions]
    answer: Altered = {}
    configs: dict[str, dict[str, str]] = {}
    for each in alterations:
        problem = _duplicate() if each.user in answer else _problem(image, each)
        answer[each.user] = answer.get(each.user) or problem
        if problem is None:
            current = configs.setdefault(each.user, dict(image.user_configs.get(each.user, {})))
            _alter(current, each)
    changes = [user_configs(user, after) for user, after in configs.items() if answer[user] is None]
    if changes and decoy_key is not None and not image.decoy_key:
        changes.insert(0, _decoy(decoy_key()))
    return Decision(changes, answer)


def _decoy(key: bytes) -> Change:
    return {"type": "decoy-key", "key": key.hex()}


def _duplicate() -> KafkaError:
    return KafkaError(
        ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    )


def _problem(image: ClusterImage, each: Deletion | Upsertion) -> KafkaError | None:
    mechanism = BY_NUMBER.get(each.mechanism)
    if not each.user:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism is None:
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(each, Upsertion):
        return _upsertion_problem(each)
    if mechanism.label not in image.user_configs.get(each.user, {}):
        return KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return None


def _upsertion_problem(each: Upsertion) -> KafkaError | None:
    if each.iterations < MIN_ITERATIONS:
        problem = "Too few iterations"
    elif each.iterations > MAX_ITERATIONS:
        problem = "Too many iterations"
    elif len(each.user) > USER_LENGTH_MAX:
        problem = f"A user name may have {USER_LENGTH_MAX} characters"
    elif len(each.salt) > SALT_BYTES_MAX:
        problem = f"A salt may have {SALT_BYTES_MAX} bytes"
    else:
        return None
    return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, problem)


def _alter(configs: dict[str, str], each: Deletion | Upsertion) -> None:
    mechanism = BY_NUMBER[each.mechanism]
    if isinstance(each, Deletion):
        del configs[mechanism.label]
        return
    configs[mechanism.label] = ScramCredential.of_salted_password(
        mechanism, each.salted_password, each.salt, each.iterations
    ).to_text()


Described = dict[str, "dict[ScramMechanism, int] | KafkaError"]
"""By user: the iterations of each mechanism's credential, or an error."""


def describe_credentials(image: ClusterImage, users: Sequence[str] | None) -> Described:
    """Return which credentials users have, but not the credentials; all users if none are named."""
    described: Described = {}
    for user in users or [name for name in image.user_configs if _iterations(image, name)]:
        iterations = _iterations(image, user)
        if user in described:
            described[user] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE,
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
            )
        elif iterations:
            described[user] = iterations
        else:
            described[user] = KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND,
                f"Attempt to describe a user credential that does not exist: {user}",
            )
    return described


def _iterations(image: ClusterImage, user: str) -> dict[ScramMechanism, int]:
    """Return the iterations of a user's credentials by mechanism; -1 for a credential that is damaged."""
    configs = image.user_configs.get(user, {})
    return {BY_LABEL[label]: _count(text) for label, text in configs.items() if label in BY_LABEL}


def _count(text: str) -> int:
    try:
        return ScramCredential.from_text(text).iterations
    except BadCredential:
        return -1

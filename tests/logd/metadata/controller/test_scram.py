"""Decisions about users' SCRAM credentials, with the errors of Kafka's ScramControlManager."""

from __future__ import annotations

import hashlib

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.controller.scram import (
    SALT_BYTES_MAX,
    USER_LENGTH_MAX,
    Deletion,
    Upsertion,
    alter_credentials,
    describe_credentials,
)
from logd.metadata.image import ClusterImage, user_configs
from logd.security.scram_credential import ScramCredential, ScramMechanism

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
QUOTA = {"producer_byte_rate": "1"}


def upsertion(
    user: str = "alice", mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt"
) -> Upsertion:
    salted = hashlib.pbkdf2_hmac("sha256" if mechanism == 1 else "sha512", b"pencil", salt, 4096)
    return Upsertion(user=user, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)


def credential(mechanism: ScramMechanism = SHA_256) -> str:
    return ScramCredential.of_password(mechanism, "pencil", salt=b"salt").to_text()


def image_of(**users: dict[str, str]) -> ClusterImage:
    return ClusterImage.of(user_configs(user, configs) for user, configs in users.items())


def outcome(error: KafkaError | None) -> tuple[ErrorCode, str] | None:
    return None if error is None else (ErrorCode(error.code), error.message)


def errors_of(
    image: ClusterImage, *alterations: Deletion | Upsertion
) -> dict[str, tuple[ErrorCode, str] | None]:
    """Return the answer by user, and check that users with an error are not changed."""
    decision = alter_credentials(
        image,
        [each for each in alterations if isinstance(each, Deletion)],
        [each for each in alterations if isinstance(each, Upsertion)],
    )
    answers = {user: outcome(error) for user, error in decision.answer.items()}
    assert {each["user"] for each in decision.changes} == {
        user for user, error in answers.items() if error is None
    }
    return answers


def test_both_mechanisms_are_set_and_deleted_and_quotas_stay() -> None:
    image = image_of(alice=QUOTA)
    (change,) = alter_credentials(image, [], [upsertion()]).changes
    image.apply(change)
    (change,) = alter_credentials(image, [], [upsertion(mechanism=2)]).changes
    both = {"SCRAM-SHA-256": credential(), "SCRAM-SHA-512": credential(SHA_512)}
    assert change == user_configs("alice", QUOTA | both)
    image.apply(change)
    (change,) = alter_credentials(image, [Deletion(user="alice", mechanism=1)], []).changes
    assert change == user_configs("alice", QUOTA | {"SCRAM-SHA-512": credential(SHA_512)})


def test_a_user_without_anything_is_gone() -> None:
    image = image_of(alice={"SCRAM-SHA-256": credential()})
    (change,) = alter_credentials(image, [Deletion(user="alice", mechanism=1)], []).changes
    image.apply(change)
    assert image.user_configs == {}


def test_kafkas_errors() -> None:
    bad = ErrorCode.UNACCEPTABLE_CREDENTIAL
    none = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    image = image_of(alice={"SCRAM-SHA-256": credential()})
    assert errors_of(
        image,
        upsertion("few", iterations=4095),
        upsertion("many", iterations=16385),
        upsertion("mechanism", mechanism=3),
        upsertion(""),
        upsertion("x" * (USER_LENGTH_MAX + 1)),
        upsertion("salt", salt=b"x" * (SALT_BYTES_MAX + 1)),
        upsertion("right", iterations=16384),
        Deletion(user="other", mechanism=0),
        Deletion(user="bob", mechanism=1),
        Deletion(user="alice", mechanism=2),
    ) == {
        "few": (bad, "Too few iterations"),
        "many": (bad, "Too many iterations"),
        "mechanism": (none, "Unknown SCRAM mechanism"),
        "": (bad, "Username must not be empty"),
        "x" * (USER_LENGTH_MAX + 1): (bad, "A user name may have 1000 characters"),
        "salt": (bad, "A salt may have 1024 bytes"),
        "right": None,
        "other": (none, "Unknown SCRAM mechanism"),
        "bob": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
        "alice": (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"),
    }


def test_a_credential_is_altered_once_in_a_request() -> None:
    image = image_of(alice={"SCRAM-SHA-256": credential()})
    twice = ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
    assert errors_of(
        image,
        Deletion(user="alice", mechanism=1),
        upsertion("alice"),
        upsertion("bob"),
        upsertion("bob", mechanism=2),
        upsertion("carol"),
    ) == {"alice": twice, "bob": twice, "carol": None}


def test_the_first_error_of_a_user_counts() -> None:
    few = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    assert errors_of(ClusterImage(), upsertion(iterations=1), upsertion(mechanism=2)) == {"alice": few}


def test_the_first_user_of_a_standalone_broker_comes_with_a_key_for_decoys() -> None:
    image = ClusterImage()
    keys = iter((b"first", b"second"))
    for user in ("alice", "bob"):
        decision = alter_credentials(image, [], [upsertion(user)], decoy_key=lambda: next(keys))
        for change in decision.changes:
            image.apply(change)
    assert image.decoy_key == b"first"
    assert sorted(image.user_configs) == ["alice", "bob"]


def test_a_description_has_iterations_only() -> None:
    image = image_of(alice={"SCRAM-SHA-256": credential(), "SCRAM-SHA-512": credential(SHA_512)}, quota=QUOTA)
    alice = {SHA_256: 4096, SHA_512: 4096}
    assert describe_credentials(image, None) == describe_credentials(image, []) == {"alice": alice}
    described = describe_credentials(image, ["alice", "quota", "bob", "bob"])
    assert described.pop("alice") == alice
    errors = {user: outcome(error) for user, error in described.items() if isinstance(error, KafkaError)}
    assert errors == {
        "quota": (
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: quota",
        ),
        "bob": (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
        ),
    }


def test_a_damaged_credential_is_listed() -> None:
    assert describe_credentials(image_of(alice={"SCRAM-SHA-256": "?"}), None) == {"alice": {SHA_256: -1}}

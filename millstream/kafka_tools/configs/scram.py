"""Users' SCRAM credentials (KIP-554): the salted password is made here, the password itself goes nowhere."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafka_client.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from millstream.kafka_tools.java.java_errors import illegal_argument, of_answer
from millstream.terminal.session import Session

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
DIGESTS = {1: "sha256", 2: "sha512"}
ITERATIONS = 4096
"""The default number of iterations, which is also the minimum."""
SALT_BYTES = 24
CREDENTIAL = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")


async def describe_credentials(session: Session, names: Sequence[str]) -> None:
    """Print which credentials users have; of all users where none is named."""
    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] or None)
    response: DescribeUserScramCredentialsResponse = await session.client.request(request)
    if response.error_code:
        raise _refusal(response.error_code, response.error_message)
    shown = {number: name for name, number in MECHANISMS.items()}
    for user in response.results:
        if user.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if user.error_code:
            text = of_answer(_refusal(user.error_code, user.error_message)).full_text
            print(
                f"Error retrieving SCRAM credential configs for user-principal '{user.user}': "
                f"ExecutionException: {text}"
            )
            continue
        infos = [f"{shown[info.mechanism]}=iterations={info.iterations}" for info in user.credential_infos]
        print(f"SCRAM credential configs for user-principal '{user.user}' are {', '.join(infos)}")


async def alter_credentials(
    session: Session, user: str, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and delete a user's credentials."""
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=user, mechanism=MECHANISMS[key]) for key in deleted],
        upsertions=[_upsertion(user, key, text) for key, text in added.items()],
    )
    response: AlterUserScramCredentialsResponse = await session.client.request(request)
    for result in response.results:
        if result.error_code:
            raise _refusal(result.error_code, result.error_message)


def _upsertion(user: str, mechanism: str, text: str) -> ScramCredentialUpsertion:
    if (match := CREDENTIAL.fullmatch(text)) is None:
        name = mechanism.replace("-", "_")
        raise illegal_argument(f"Invalid credential property {name}={text}")
    iterations = ITERATIONS if match[1] in (None, "-1") else int(match[1] or 0)
    if iterations < ITERATIONS:
        raise illegal_argument(
            f"Iterations {iterations} is less than the minimum {ITERATIONS} required for {mechanism}"
        )
    salt = secrets.token_bytes(SALT_BYTES)
    number = MECHANISMS[mechanism]
    return ScramCredentialUpsertion(
        name=user,
        mechanism=number,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(DIGESTS[number], match[2].encode(), salt, iterations),
    )


def _refusal(code: int, message: str | None) -> KafkaError:
    error = KafkaError(code)
    error.broker_message = message
    return error

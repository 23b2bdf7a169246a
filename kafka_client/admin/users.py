"""Admin calls about users' SCRAM credentials (KIP-554). Passwords stay here: brokers get them salted."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import string
from collections.abc import Iterable

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.errors import KafkaError, error_for
from kafka_client.security.scram import HASHES, MIN_ITERATIONS
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

SALT_LENGTH = 26
SALT_CHARACTERS = string.digits + string.ascii_lowercase
"""The form of salts that Kafka's own client makes: those of logd's decoys look the same."""
_NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_LABELS = {number: label for label, number in _NUMBERS.items()}


class UserAdmin(AdminBase):
    """Users; see `admin.Admin`. A mechanism is `SCRAM-SHA-256` or `SCRAM-SHA-512`."""

    async def describe_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, dict[str, int]]:
        """Return the iterations of users' credentials, by user and mechanism; of all users by default.

        Raises KafkaError(RESOURCE_NOT_FOUND) if a named user has no credential.
        """
        names = None if users is None else [UserName(name=user) for user in users]
        response: DescribeUserScramCredentialsResponse = await self._ask_controller(
            DescribeUserScramCredentialsRequest(users=names)
        )
        if response.error_code:
            raise error_for(response.error_code, response.error_message or "describing users")
        for result in response.results:
            if result.error_code:
                raise _refused(result.user, result.error_code, result.error_message)
        return {
            result.user: {_LABELS[each.mechanism]: each.iterations for each in result.credential_infos}
            for result in response.results
        }

    async def set_scram_credential(
        self, user: str, mechanism: str, password: str, *, iterations: int = MIN_ITERATIONS
    ) -> None:
        """Create a user's credential, or replace it. Raises KafkaError(UNACCEPTABLE_CREDENTIAL)."""
        salt = "".join(secrets.choice(SALT_CHARACTERS) for _ in range(SALT_LENGTH)).encode()
        salted = await asyncio.to_thread(
            hashlib.pbkdf2_hmac, HASHES[mechanism], password.encode(), salt, max(iterations, 1)
        )
        upsertion = ScramCredentialUpsertion(
            name=user,
            mechanism=_NUMBERS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted,
        )
        await self._alter(AlterUserScramCredentialsRequest(upsertions=[upsertion]))

    async def delete_scram_credential(self, user: str, mechanism: str) -> None:
        """Delete a user's credential. Raises KafkaError(RESOURCE_NOT_FOUND) if there is none."""
        deletion = ScramCredentialDeletion(name=user, mechanism=_NUMBERS[mechanism])
        await self._alter(AlterUserScramCredentialsRequest(deletions=[deletion]))

    async def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        response: AlterUserScramCredentialsResponse = await self._ask_controller(request)
        for result in response.results:
            if result.error_code:
                raise _refused(result.user, result.error_code, result.error_message)


def _refused(user: str, code: int, message: str | None) -> KafkaError:
    return refusal(code, f"user {user}", user, message)

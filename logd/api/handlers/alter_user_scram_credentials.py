"""AlterUserScramCredentials, 0: the controller sets and deletes users' SCRAM credentials (KIP-554).

Clients send a salted password, from which the credential is made; nothing of it is in logs or errors.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from logd.api.request.context import RequestContext
from logd.metadata.controller.core import Controller
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.scram import Altered, Deletion, Upsertion, alter_credentials
from logd.security.scram_users import new_decoy_key

REQUEST = AlterUserScramCredentialsRequest


async def handle(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Answer user by user."""
    deletions = [Deletion(user=each.name, mechanism=each.mechanism) for each in request.deletions]
    upsertions = [
        Upsertion(
            user=each.name,
            mechanism=each.mechanism,
            iterations=each.iterations,
            salt=bytes(each.salt),
            salted_password=bytes(each.salted_password),
        )
        for each in request.upsertions
    ]
    decoy_key = new_decoy_key if context.broker.cluster.is_standalone else None

    def alteration(controller: Controller) -> Decision[Altered]:
        return alter_credentials(controller.image, deletions, upsertions, decoy_key=decoy_key)

    try:
        altered = await context.broker.catalog.decide(alteration)
    except KafkaError as error:
        return refused(request, error.code)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else None,
            )
            for user, error in altered.items()
        ]
    )


def refused(request: AlterUserScramCredentialsRequest, code: ErrorCode) -> AlterUserScramCredentialsResponse:
    """Return the response for when the controller cannot be reached, or cannot write."""
    names = [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=user, error_code=code) for user in dict.fromkeys(names)]
    )

"""DescribeUserScramCredentials, 0: users' SCRAM mechanisms with their iterations (KIP-554).

The controller answers, so that a change shows at once. Salts and keys are never returned.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from logd.api.request.context import RequestContext
from logd.metadata.controller.scram import describe_credentials
from logd.security.scram_credential import ScramMechanism

REQUEST = DescribeUserScramCredentialsRequest


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answer user by user; for all users if none is named."""
    users = None if request.users is None else [each.name for each in request.users]
    described = describe_credentials(context.broker.image, users)
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_result(user, outcome) for user, outcome in described.items()]
    )


def refused(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    """Return the response for when the controller cannot be reached."""
    return DescribeUserScramCredentialsResponse(error_code=code)


def _result(user: str, outcome: dict[ScramMechanism, int] | KafkaError) -> DescribeUserScramCredentialsResult:
    if isinstance(outcome, KafkaError):
        return DescribeUserScramCredentialsResult(
            user=user, error_code=outcome.code, error_message=outcome.message
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        credential_infos=[
            CredentialInfo(mechanism=mechanism.number, iterations=iterations)
            for mechanism, iterations in outcome.items()
        ],
    )

"""ApiVersions, 0 to 4: what this broker serves (KIP-35, KIP-511).

A version above ours is answered in version 0 with error 35 and our ranges. The feature
``transaction.version`` is finalized at 2: from there on clients have an epoch of its own for every
transaction (KIP-890).
"""

from __future__ import annotations

import re

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from logd.api.request.context import RequestContext
from logd.api.table import APIS

REQUEST = ApiVersionsRequest

TRANSACTION_VERSION = "transaction.version"
TRANSACTION_VERSION_LEVEL = 2
FEATURES_EPOCH = 0
"""Grows with every change of a finalized feature; there are none."""
ZERO_FROM = 4

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """Return the served versions, or INVALID_REQUEST for a client's software name or version that Kafka
    refuses.
    """
    if context.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=_served(),
        supported_features=[
            SupportedFeatureKey(
                name=TRANSACTION_VERSION,
                # Clients of version 3 do not take a range that begins with 0 (KAFKA-17011).
                min_version=0 if context.version >= ZERO_FROM else 1,
                max_version=TRANSACTION_VERSION_LEVEL,
            )
        ],
        finalized_features_epoch=FEATURES_EPOCH,
        finalized_features=[
            FinalizedFeatureKey(
                name=TRANSACTION_VERSION,
                min_version_level=TRANSACTION_VERSION_LEVEL,
                max_version_level=TRANSACTION_VERSION_LEVEL,
            )
        ],
    )


def unsupported_version() -> ApiVersionsResponse:
    """Return the response, in version 0, to a client that speaks a later version of this API."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_served())


def _served() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=api.key, min_version=api.first, max_version=api.last)
        for api in sorted(APIS.values())
    ]

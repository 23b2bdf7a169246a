"""UpdateFeatures, 0 to 2: features stay where they are (KIP-584).

The one there is, ``transaction.version``, is what the transaction coordinator does; it cannot be changed.
Asking for what already is succeeds; one update that cannot be done refuses all of the request.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from logd.api.handlers.api_versions import TRANSACTION_VERSION, TRANSACTION_VERSION_LEVEL
from logd.api.request.context import RequestContext

REQUEST = UpdateFeaturesRequest

UPGRADE_TYPES = (1, 2, 3)
"""Upgrade, safe and unsafe downgrade."""


def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    """Answer INVALID_UPDATE_VERSION for the first update that would change a feature's version."""
    for update in request.feature_updates:
        if (problem := _problem(update, context.broker.node_id)) is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=(
                    "The update failed for all features since the following feature had an error: Invalid "
                    f"update version {update.max_version_level} for feature {update.feature}. {problem}"
                ),
            )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name)
            for update in request.feature_updates
        ],
    )


def refused(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    """Return the response for when the controller cannot be reached."""
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_code=code)
            for update in request.feature_updates
        ],
    )


def _problem(update: FeatureUpdateKey, node_id: int) -> str | None:
    if update.feature != TRANSACTION_VERSION:
        return f"Local controller {node_id} does not support this feature."
    if update.upgrade_type not in UPGRADE_TYPES:
        return "The controller does not support the given upgrade type."
    if update.max_version_level != TRANSACTION_VERSION_LEVEL:
        return f"It is {TRANSACTION_VERSION_LEVEL} here and cannot be changed."
    return None

"""The quota on changes of topics (KIP-599): partitions that a client has the controller create and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logd.api.request.context import RequestContext


def count_mutations(context: RequestContext, partitions: int, *, strict_from: int) -> None:
    """Count partitions of a change.

    Raises KafkaError(THROTTLING_QUOTA_EXCEEDED) if the client's quota is used up and its request has version
    `strict_from` or later, from which on clients know the error.
    """
    quotas = context.broker.client_quotas
    if quotas is not None:
        is_strict = context.version >= strict_from
        quotas.mutated(context.user, context.client_id or "", partitions, is_strict=is_strict)


def mutation_throttle_ms(context: RequestContext) -> int:
    """Return how long the client has to wait after its changes, in ms."""
    quotas = context.broker.client_quotas
    return 0 if quotas is None else quotas.mutation_throttle_ms(context.user, context.client_id or "")

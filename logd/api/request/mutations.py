"""The quota on changes of topics (KIP-599): partitions that a client has the controller create and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logd.api.request.context import RequestContext


def check_mutations(context: RequestContext, *, strict_from: int) -> None:
    """Raise KafkaError(THROTTLING_QUOTA_EXCEEDED) if the client's quota is used up.

    `strict_from` is the first version of the request whose clients know the error. Clients of older ones wait
    afterwards only.
    """
    quotas = context.broker.client_quotas
    if quotas is not None and context.version >= strict_from:
        quotas.check_mutations(context.user, context.client_id or "")


def count_mutations(context: RequestContext, partitions: int) -> None:
    """Count the partitions of a change that was made, or that would have been if it was asked about only."""
    quotas = context.broker.client_quotas
    if quotas is not None:
        quotas.mutated(context.user, context.client_id or "", partitions)


def mutation_throttle_ms(context: RequestContext) -> int:
    """Return how long the client has to wait after its changes, in ms."""
    quotas = context.broker.client_quotas
    return 0 if quotas is None else quotas.mutation_throttle_ms(context.user, context.client_id or "")

"""The quotas of clients on this broker: what each client used, and how long it has to wait.

As in Apache Kafka each broker counts on its own, and the controller counts mutations. The brokers of the
cluster have no quotas. Use is remembered for the `USERS_MAX` clients that were active last.

The room is only there while the cluster has quotas (`Broker.client_quotas`): without any, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.quotas.limits import QuotaLimits
from logd.broker.quotas.rate import WINDOW_MS, WINDOWS, Rate, TokenBucket
from logd.metadata.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    quotas_of,
)

if TYPE_CHECKING:
    from kafka_client.metrics.metrics import Values
    from logd.broker.quotas.limits import Limit
    from logd.metadata.image import ClusterImage

USERS_MAX: Final = 10_000
"""Most clients whose use is remembered, of each kind of quota. Those longest without a request go first."""
THROTTLE_MS_MAX: Final = 2**31 - 1
"""The longest wait that a response can say, in ms."""
_KINDS: Final = {
    PRODUCER_BYTE_RATE: ("Produce", "byte-rate"),
    CONSUMER_BYTE_RATE: ("Fetch", "byte-rate"),
    REQUEST_PERCENTAGE: ("Request", "request-time"),
    CONTROLLER_MUTATION_RATE: ("ControllerMutation", "tokens"),
}
"""Kafka's type of each quota's metrics, and the name of what is limited."""


def _wait(milliseconds: float) -> int:
    return round(min(milliseconds, THROTTLE_MS_MAX))


class _Use:
    """The use of one limit, by all clients that share it."""

    __slots__ = ("bucket", "limit", "rate", "throttle_ms")

    def __init__(self, limit: float, now_ms: int, *, by_tokens: bool) -> None:
        self.limit = limit
        self.rate = Rate()
        self.bucket = TokenBucket(limit, now_ms) if by_tokens else None
        self.throttle_ms = 0
        """The last wait, in ms."""

    def value(self, now_ms: int) -> float:
        if self.bucket is not None:
            return self.bucket.tokens(self.limit, now_ms)
        return self.rate.per_second(now_ms)


class ClientQuotas:
    """The limits and the use of all clients; `now_s` is a clock in seconds that does not go back."""

    def __init__(self, image: ClusterImage, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._uses: dict[str, dict[tuple[str, str], _Use]] = {key: {} for key in _KINDS}
        self._connections: dict[str, Rate] = {}
        self.limits: QuotaLimits
        self.configure(image)

    def configure(self, image: ClusterImage) -> None:
        """Take the limits that the image has now. What clients used is remembered."""
        self.limits = QuotaLimits(quotas_of(image))

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)

    def produced(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of a Produce request. Return how long its client has to wait, in ms."""
        return self._recorded(PRODUCER_BYTE_RATE, user, client_id, size)

    def fetched(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of a response to Fetch. Return how long its client has to wait, in ms."""
        return self._recorded(CONSUMER_BYTE_RATE, user, client_id, size)

    def served(self, user: str, client_id: str, seconds: float) -> int:
        """Count the time that a request took this broker's event loop.

        Returns how long its client has to wait, in ms: a window's length at most, as in Kafka.
        """
        return min(self._recorded(REQUEST_PERCENTAGE, user, client_id, seconds * 100), WINDOW_MS)

    def fetch_bytes_max(self, user: str, client_id: str) -> float | None:
        """Return the most bytes that a fetch may take without a wait for certain, None for no limit."""
        limit = self.limits.find(CONSUMER_BYTE_RATE, user, client_id)
        return None if limit is None else limit.value * (WINDOWS - 1) * WINDOW_MS / 1000

    def check_mutations(self, user: str, client_id: str) -> None:
        """Raise KafkaError(THROTTLING_QUOTA_EXCEEDED) if a client has no tokens left (KIP-599)."""
        use, now_ms = self._use(CONTROLLER_MUTATION_RATE, user, client_id)
        if use is not None and use.bucket is not None and use.bucket.tokens(use.limit, now_ms) < 0:
            use.throttle_ms = _wait(use.bucket.throttle_ms(use.limit, now_ms))
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")

    def mutated(self, user: str, client_id: str, count: int) -> None:
        """Count partitions that a request has created or deleted."""
        use, now_ms = self._use(CONTROLLER_MUTATION_RATE, user, client_id)
        if use is None or use.bucket is None:
            return
        use.bucket.take(count, use.limit, now_ms)
        use.rate.record(count, now_ms)

    def mutation_throttle_ms(self, user: str, client_id: str) -> int:
        """Return how long a client has to wait after changes of topics, in ms."""
        use, now_ms = self._use(CONTROLLER_MUTATION_RATE, user, client_id)
        if use is None or use.bucket is None:
            return 0
        use.throttle_ms = _wait(use.bucket.throttle_ms(use.limit, now_ms))
        return use.throttle_ms

    def connected(self, address: str) -> bool:
        """Count a new connection of an address. Return False if it is one too many."""
        limit = self.limits.of_address(address)
        if limit is None:
            return True
        now_ms = self._now_ms()
        rate = self._connections.pop(address, None) or Rate()
        self._connections[address] = rate
        if len(self._connections) > USERS_MAX:
            del self._connections[next(iter(self._connections))]
        rate.record(1, now_ms)
        if rate.per_second(now_ms) <= limit:
            return True
        rate.record(-1, now_ms)  # a connection that is refused does not delay the next
        return False

    def _recorded(self, key: str, user: str, client_id: str, value: float) -> int:
        use, now_ms = self._use(key, user, client_id)
        if use is None:
            return 0
        use.rate.record(value, now_ms)
        use.throttle_ms = _wait(use.rate.throttle_ms(use.limit, now_ms))
        return use.throttle_ms

    def _use(self, key: str, user: str, client_id: str) -> tuple[_Use | None, int]:
        limit = self.limits.find(key, user, client_id)
        now_ms = self._now_ms()
        return (None if limit is None else self._use_of(key, limit, now_ms)), now_ms

    def _use_of(self, key: str, limit: Limit, now_ms: int) -> _Use:
        uses, name = self._uses[key], (limit.user, limit.client_id)
        use = uses.pop(name, None)
        if use is None:
            use = _Use(limit.value, now_ms, by_tokens=key == CONTROLLER_MUTATION_RATE)
        uses[name] = use  # the last one is the one that was active last
        use.limit = limit.value
        if len(uses) > USERS_MAX:
            del uses[next(iter(uses))]
        return use

    def metrics(self, type: str) -> Iterable[tuple[Mapping[str, str], Values]]:
        """Yield the metrics of a type, such as Produce, of each client that has used a quota of it."""
        now_ms = self._now_ms()
        for key, (of_type, name) in _KINDS.items():
            if of_type != type:
                continue
            for (user, client_id), use in self._uses[key].items():
                values = {name: use.value(now_ms), "throttle-time": float(use.throttle_ms)}
                if use.bucket is not None:
                    values["mutation-rate"] = use.rate.per_second(now_ms)
                yield {"user": user, "client-id": client_id}, values

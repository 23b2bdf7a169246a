"""Admin calls about brokers themselves: logd's own, which Apache Kafka does not have."""

from __future__ import annotations

from kafka_client.admin.base import AdminBase
from kafka_client.cluster.answers import refusal
from kafka_client.wire.private.broker_shutdown import BrokerShutdownRequest, BrokerShutdownResponse


class BrokerAdmin(AdminBase):
    """Brokers; see `admin.Admin`."""

    async def shut_down_broker(self, broker: int) -> None:
        """Have a broker stop as by SIGTERM; it has begun to when this returns. It is asked once.

        KafkaError: POLICY_VIOLATION where its millstream.remote.shutdown.enable is false, INVALID_REQUEST
        where its process is not its own or another broker is at its address. ConnectionClosed also where it
        is no logd; RequestTimedOut.
        """
        response: BrokerShutdownResponse = await self._client.request(
            BrokerShutdownRequest(broker_id=broker), node=broker, timeout_ms=self._timeout_ms
        )
        if response.error_code:
            raise refusal(
                response.error_code,
                f"shutdown of broker {broker}",
                f"broker {broker}",
                response.error_message,
            )

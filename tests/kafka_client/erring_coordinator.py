"""A scripted broker for many transactional ids at once, each named for the errors it is to be answered with.

    "2/TxnOffsetCommit/22": the first TxnOffsetCommit is answered with error code 22

What else they ask is answered as by the `FakeCoordinator` that each has to itself.
"""

from __future__ import annotations

from typing import Any

from kafka_client.errors import ErrorCode
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.kafka_client.fake_broker import FakeBroker, ReceivedRequest
from tests.kafka_client.fake_coordinator import FakeCoordinator

REQUESTS = {
    "FindCoordinator": None,
    "FindGroupCoordinator": None,
    "InitProducerId": ApiKey.INIT_PRODUCER_ID,
    "AddPartitionsToTxn": ApiKey.ADD_PARTITIONS_TO_TXN,
    "AddOffsetsToTxn": ApiKey.ADD_OFFSETS_TO_TXN,
    "TxnOffsetCommit": ApiKey.TXN_OFFSET_COMMIT,
    "Produce": ApiKey.PRODUCE,
    "EndTxn": ApiKey.END_TXN,
}
_KEY_TYPES = {0: "FindGroupCoordinator", 1: "FindCoordinator"}


class ErringCoordinator:
    """Serves at a broker, by one transaction version. `coordinators` are those of the ids that have come."""

    def __init__(self, broker: FakeBroker, version: int) -> None:
        self.coordinators: dict[str, FakeCoordinator] = {}
        self._broker = broker
        self._version = version
        self._lookups: dict[tuple[str, str], int] = {}
        sample = FakeCoordinator(broker, version)
        sample.serve_at(broker)
        for key in sample.scripts:
            broker.on(key, self._dispatch)
        broker.on(ApiKey.FIND_COORDINATOR, self._find)

    def _dispatch(self, request: ReceivedRequest) -> Any:
        if request.api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
            name = request.message.v3_and_below_transactional_id
        else:
            name = request.message.transactional_id
        return self._coordinator(name).scripts[ApiKey(request.api_key)](request)

    def _coordinator(self, name: str) -> FakeCoordinator:
        if name not in self.coordinators:
            made = self.coordinators[name] = FakeCoordinator(self._broker, self._version, name)
            _, request, code = name.split("/")
            if (key := REQUESTS[request]) is not None:
                made.refuse(key, ErrorCode(int(code)))
        return self.coordinators[name]

    def _find(self, request: ReceivedRequest) -> FindCoordinatorResponse:
        """Answer with the scripted error at the first look-up of a name, and with this broker after it."""
        message = request.message
        names = message.coordinator_keys if request.version >= 4 else [message.key]
        coordinators = []
        for name in names:
            _, api, code = name.split("/")
            what = _KEY_TYPES[message.key_type]
            count = self._lookups[name, what] = self._lookups.get((name, what), 0) + 1
            fails = api == what and count == 1
            coordinators.append(
                Coordinator(
                    key=name,
                    node_id=self._broker.node_id,
                    host="127.0.0.1",
                    port=self._broker.port,
                    error_code=ErrorCode(int(code)) if fails else ErrorCode.NONE,
                )
            )
        first = coordinators[0]
        return FindCoordinatorResponse(
            coordinators=coordinators,
            error_code=first.error_code,
            node_id=first.node_id,
            host=first.host,
            port=first.port,
        )

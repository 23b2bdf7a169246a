"""The APIs served: key, module in ``logd.api.handlers`` and the range of versions.

ApiVersions answers from ``APIS`` without importing any of the modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Api(NamedTuple):
    """``first`` and ``last`` are the advertised versions; ``serves_from`` is the first really parsed.

    ``by_controller``: in a cluster of several brokers others send such requests on to the controller.
    """

    key: int
    module: str
    first: int
    last: int
    serves_from: int
    by_controller: bool = False


def _api(key: int, module: str, first: int, last: int, serves_from: int | None = None) -> tuple[int, Api]:
    return key, Api(key, module, first, last, first if serves_from is None else serves_from)


def _by_controller(key: int, module: str, first: int, last: int) -> tuple[int, Api]:
    return key, Api(key, module, first, last, first, by_controller=True)


PRODUCE = 0
FETCH = 1
FIND_COORDINATOR = 10
SASL_HANDSHAKE = 17
API_VERSIONS = 18
SASL_AUTHENTICATE = 36

FLEXIBLE_PRODUCE = 9
FLEXIBLE_FETCH = 12
"""The first flexible versions, as in `kafka_client.wire`, which is not imported before there is a request."""

# Produce is advertised from 0 though served from 3: librdkafka takes a higher minimum as a sign that the
# broker knows no compression but gzip and silently turns it off (KAFKA-18659).
APIS: Mapping[int, Api] = dict(
    (
        _api(PRODUCE, "produce", 0, 13, 3),
        _api(FETCH, "fetch", 4, 18),
        _api(2, "list_offsets", 1, 11),
        _api(3, "metadata", 0, 13),
        _api(8, "offset_commit", 2, 10),
        _api(9, "offset_fetch", 1, 10),
        _api(FIND_COORDINATOR, "find_coordinator", 0, 6),
        _api(11, "join_group", 0, 9),
        _api(12, "heartbeat", 0, 4),
        _api(13, "leave_group", 0, 5),
        _api(14, "sync_group", 0, 5),
        _api(15, "describe_groups", 0, 6),
        _api(16, "list_groups", 0, 5),
        _api(SASL_HANDSHAKE, "sasl_handshake", 0, 1),
        _api(API_VERSIONS, "api_versions", 0, 4),
        _by_controller(19, "create_topics", 2, 7),
        _by_controller(20, "delete_topics", 1, 6),
        _api(21, "delete_records", 0, 2),
        _api(22, "init_producer_id", 0, 5),
        _api(23, "offset_for_leader_epoch", 2, 4),
        _api(28, "txn_offset_commit", 0, 5),
        _api(24, "add_partitions_to_txn", 0, 5),
        _api(25, "add_offsets_to_txn", 0, 4),
        _api(26, "end_txn", 0, 5),
        _api(27, "write_txn_markers", 1, 2),
        _api(29, "describe_acls", 1, 3),
        _by_controller(30, "create_acls", 1, 3),
        _by_controller(31, "delete_acls", 1, 3),
        _api(32, "describe_configs", 1, 4),
        _by_controller(33, "alter_configs", 0, 2),
        _api(34, "alter_replica_log_dirs", 1, 2),
        _api(35, "describe_log_dirs", 1, 5),
        _api(SASL_AUTHENTICATE, "sasl_authenticate", 0, 2),
        _by_controller(37, "create_partitions", 0, 3),
        _api(42, "delete_groups", 0, 2),
        _by_controller(43, "elect_leaders", 0, 2),
        _by_controller(44, "incremental_alter_configs", 0, 1),
        _by_controller(45, "alter_partition_reassignments", 0, 1),
        _by_controller(46, "list_partition_reassignments", 0, 0),
        _api(47, "offset_delete", 0, 0),
        _by_controller(48, "describe_client_quotas", 0, 1),
        _by_controller(49, "alter_client_quotas", 0, 1),
        _by_controller(50, "describe_user_scram_credentials", 0, 0),
        _by_controller(51, "alter_user_scram_credentials", 0, 0),
        _api(55, "describe_quorum", 0, 2),
        _by_controller(57, "update_features", 0, 2),
        _api(60, "describe_cluster", 0, 2),
        _api(61, "describe_producers", 0, 0),
        _api(65, "describe_transactions", 0, 0),
        _api(66, "list_transactions", 0, 2),
        _api(74, "list_config_resources", 0, 1),
        _api(75, "describe_topic_partitions", 0, 0),
    )
)

BROKER_APIS: Mapping[int, Api] = dict(
    (
        _api(56, "alter_partition", 2, 3),
        _api(58, "envelope", 0, 0),
        _api(67, "allocate_producer_ids", 0, 0),
        _api(10_000, "cluster_update", 0, 0),
        _api(10_001, "broker_report", 0, 0),
    )
)
"""APIs between brokers of a cluster. A standalone broker serves none, and ApiVersions does not list them."""

OPERATOR_APIS: Mapping[int, Api] = dict((_api(10_002, "broker_shutdown", 0, 0),))
"""APIs for millstream's own command, on any broker; ApiVersions does not list them."""

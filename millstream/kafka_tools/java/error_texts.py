"""Kafka's exception class and default message of each error code."""

from __future__ import annotations

ERROR_TEXTS: dict[str, tuple[str, str]] = {
    "UNKNOWN_SERVER_ERROR": (
        "errors.UnknownServerException",
        "The server experienced an unexpected error when processing the request.",
    ),
    "OFFSET_OUT_OF_RANGE": (
        "errors.OffsetOutOfRangeException",
        "The requested offset is not within the range of offsets maintained by the server.",
    ),
    "CORRUPT_MESSAGE": (
        "errors.CorruptRecordException",
        "This message has failed its CRC checksum, exceeds the valid size, has a null key for a "
        "compacted topic, or is otherwise corrupt.",
    ),
    "UNKNOWN_TOPIC_OR_PARTITION": (
        "errors.UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
    "INVALID_FETCH_SIZE": ("errors.InvalidFetchSizeException", "The requested fetch size is invalid."),
    "LEADER_NOT_AVAILABLE": (
        "errors.LeaderNotAvailableException",
        "There is no leader for this topic-partition as we are in the middle of a leadership election.",
    ),
    "NOT_LEADER_OR_FOLLOWER": (
        "errors.NotLeaderOrFollowerException",
        "For requests intended only for the leader, this error indicates that the broker is not the"
        " current leader. For requests intended for any replica, this error indicates that the "
        "broker is not a replica of the topic partition.",
    ),
    "REQUEST_TIMED_OUT": ("errors.TimeoutException", "The request timed out."),
    "BROKER_NOT_AVAILABLE": ("errors.BrokerNotAvailableException", "The broker is not available."),
    "REPLICA_NOT_AVAILABLE": (
        "errors.ReplicaNotAvailableException",
        "The replica is not available for the requested topic-partition. Produce/Fetch requests and"
        " other requests intended only for the leader or follower return NOT_LEADER_OR_FOLLOWER if "
        "the broker is not a replica of the topic-partition.",
    ),
    "MESSAGE_TOO_LARGE": (
        "errors.RecordTooLargeException",
        "The request included a message larger than the max message size the server will accept.",
    ),
    "STALE_CONTROLLER_EPOCH": ("errors.ControllerMovedException", "The controller moved to another broker."),
    "OFFSET_METADATA_TOO_LARGE": (
        "errors.OffsetMetadataTooLarge",
        "The metadata field of the offset request was too large.",
    ),
    "NETWORK_EXCEPTION": (
        "errors.NetworkException",
        "The server disconnected before a response was received.",
    ),
    "COORDINATOR_LOAD_IN_PROGRESS": (
        "errors.CoordinatorLoadInProgressException",
        "The coordinator is loading and hence can't process requests.",
    ),
    "COORDINATOR_NOT_AVAILABLE": (
        "errors.CoordinatorNotAvailableException",
        "The coordinator is not available.",
    ),
    "NOT_COORDINATOR": ("errors.NotCoordinatorException", "This is not the correct coordinator."),
    "INVALID_TOPIC_EXCEPTION": (
        "errors.InvalidTopicException",
        "The request attempted to perform an operation on an invalid topic.",
    ),
    "RECORD_LIST_TOO_LARGE": (
        "errors.RecordBatchTooLargeException",
        "The request included message batch larger than the configured segment size on the server.",
    ),
    "NOT_ENOUGH_REPLICAS": (
        "errors.NotEnoughReplicasException",
        "Messages are rejected since there are fewer in-sync replicas than required.",
    ),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": (
        "errors.NotEnoughReplicasAfterAppendException",
        "Messages are written to the log, but to fewer in-sync replicas than required.",
    ),
    "INVALID_REQUIRED_ACKS": (
        "errors.InvalidRequiredAcksException",
        "Produce request specified an invalid value for required acks.",
    ),
    "ILLEGAL_GENERATION": (
        "errors.IllegalGenerationException",
        "Specified group generation id is not valid.",
    ),
    "INCONSISTENT_GROUP_PROTOCOL": (
        "errors.InconsistentGroupProtocolException",
        "The group member's supported protocols are incompatible with those of existing members or "
        "first group member tried to join with empty protocol type or empty protocol list.",
    ),
    "INVALID_GROUP_ID": ("errors.InvalidGroupIdException", "The group id is invalid."),
    "UNKNOWN_MEMBER_ID": ("errors.UnknownMemberIdException", "The coordinator is not aware of this member."),
    "INVALID_SESSION_TIMEOUT": (
        "errors.InvalidSessionTimeoutException",
        "The session timeout is not within the range allowed by the broker (as configured by "
        "group.min.session.timeout.ms and group.max.session.timeout.ms).",
    ),
    "REBALANCE_IN_PROGRESS": (
        "errors.RebalanceInProgressException",
        "The group is rebalancing, so a rejoin is needed.",
    ),
    "INVALID_COMMIT_OFFSET_SIZE": (
        "errors.InvalidCommitOffsetSizeException",
        "The committing offset data size is not valid.",
    ),
    "TOPIC_AUTHORIZATION_FAILED": ("errors.TopicAuthorizationException", "Topic authorization failed."),
    "GROUP_AUTHORIZATION_FAILED": ("errors.GroupAuthorizationException", "Group authorization failed."),
    "CLUSTER_AUTHORIZATION_FAILED": ("errors.ClusterAuthorizationException", "Cluster authorization failed."),
    "INVALID_TIMESTAMP": (
        "errors.InvalidTimestampException",
        "The timestamp of the message is out of acceptable range.",
    ),
    "UNSUPPORTED_SASL_MECHANISM": (
        "errors.UnsupportedSaslMechanismException",
        "The broker does not support the requested SASL mechanism.",
    ),
    "ILLEGAL_SASL_STATE": (
        "errors.IllegalSaslStateException",
        "Request is not valid given the current SASL state.",
    ),
    "UNSUPPORTED_VERSION": ("errors.UnsupportedVersionException", "The version of API is not supported."),
    "TOPIC_ALREADY_EXISTS": ("errors.TopicExistsException", "Topic with this name already exists."),
    "INVALID_PARTITIONS": ("errors.InvalidPartitionsException", "Number of partitions is below 1."),
    "INVALID_REPLICATION_FACTOR": (
        "errors.InvalidReplicationFactorException",
        "Replication factor is below 1 or larger than the number of available brokers.",
    ),
    "INVALID_REPLICA_ASSIGNMENT": (
        "errors.InvalidReplicaAssignmentException",
        "Replica assignment is invalid.",
    ),
    "INVALID_CONFIG": ("errors.InvalidConfigurationException", "Configuration is invalid."),
    "NOT_CONTROLLER": (
        "errors.NotControllerException",
        "This is not the correct controller for this cluster.",
    ),
    "INVALID_REQUEST": (
        "errors.InvalidRequestException",
        "This most likely occurs because of a request being malformed by the client library or the "
        "message was sent to an incompatible broker. See the broker logs for more details.",
    ),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": (
        "errors.UnsupportedForMessageFormatException",
        "The message format version on the broker does not support the request.",
    ),
    "POLICY_VIOLATION": (
        "errors.PolicyViolationException",
        "Request parameters do not satisfy the configured policy.",
    ),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": (
        "errors.OutOfOrderSequenceException",
        "The broker received an out of order sequence number.",
    ),
    "DUPLICATE_SEQUENCE_NUMBER": (
        "errors.DuplicateSequenceException",
        "The broker received a duplicate sequence number.",
    ),
    "INVALID_PRODUCER_EPOCH": (
        "errors.InvalidProducerEpochException",
        "Producer attempted to produce with an old epoch.",
    ),
    "INVALID_TXN_STATE": (
        "errors.InvalidTxnStateException",
        "The producer attempted a transactional operation in an invalid state.",
    ),
    "INVALID_PRODUCER_ID_MAPPING": (
        "errors.InvalidPidMappingException",
        "The producer attempted to use a producer id which is not currently assigned to its "
        "transactional id.",
    ),
    "INVALID_TRANSACTION_TIMEOUT": (
        "errors.InvalidTxnTimeoutException",
        "The transaction timeout is larger than the maximum value allowed by the broker (as "
        "configured by transaction.max.timeout.ms).",
    ),
    "CONCURRENT_TRANSACTIONS": (
        "errors.ConcurrentTransactionsException",
        "The producer attempted to update a transaction while another concurrent operation on the "
        "same transaction was ongoing.",
    ),
    "TRANSACTION_COORDINATOR_FENCED": (
        "errors.TransactionCoordinatorFencedException",
        "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the "
        "current coordinator for a given producer.",
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "errors.TransactionalIdAuthorizationException",
        "Transactional Id authorization failed.",
    ),
    "SECURITY_DISABLED": ("errors.SecurityDisabledException", "Security features are disabled."),
    "OPERATION_NOT_ATTEMPTED": (
        "errors.OperationNotAttemptedException",
        "The broker did not attempt to execute this operation. This may happen for batched RPCs "
        "where some operations in the batch failed, causing the broker to respond without trying "
        "the rest.",
    ),
    "KAFKA_STORAGE_ERROR": (
        "errors.KafkaStorageException",
        "Disk error when trying to access log file on the disk.",
    ),
    "LOG_DIR_NOT_FOUND": (
        "errors.LogDirNotFoundException",
        "The user-specified log directory is not found in the broker config.",
    ),
    "SASL_AUTHENTICATION_FAILED": ("errors.SaslAuthenticationException", "SASL Authentication failed."),
    "UNKNOWN_PRODUCER_ID": (
        "errors.UnknownProducerIdException",
        "This exception is raised by the broker if it could not locate the producer metadata "
        "associated with the producerId in question. This could happen if, for instance, the "
        "producer's records were deleted because their retention time had elapsed. Once the last "
        "records of the producerId are removed, the producer's metadata is removed from the broker,"
        " and future appends by the producer will return this exception.",
    ),
    "REASSIGNMENT_IN_PROGRESS": (
        "errors.ReassignmentInProgressException",
        "A partition reassignment is in progress.",
    ),
    "DELEGATION_TOKEN_AUTH_DISABLED": (
        "errors.DelegationTokenDisabledException",
        "Delegation Token feature is not enabled.",
    ),
    "DELEGATION_TOKEN_NOT_FOUND": (
        "errors.DelegationTokenNotFoundException",
        "Delegation Token is not found on server.",
    ),
    "DELEGATION_TOKEN_OWNER_MISMATCH": (
        "errors.DelegationTokenOwnerMismatchException",
        "Specified Principal is not valid Owner/Renewer.",
    ),
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": (
        "errors.UnsupportedByAuthenticationException",
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
        "delegation token authenticated channels.",
    ),
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": (
        "errors.DelegationTokenAuthorizationException",
        "Delegation Token authorization failed.",
    ),
    "DELEGATION_TOKEN_EXPIRED": ("errors.DelegationTokenExpiredException", "Delegation Token is expired."),
    "INVALID_PRINCIPAL_TYPE": (
        "errors.InvalidPrincipalTypeException",
        "Supplied principalType is not supported.",
    ),
    "NON_EMPTY_GROUP": ("errors.GroupNotEmptyException", "The group is not empty."),
    "GROUP_ID_NOT_FOUND": ("errors.GroupIdNotFoundException", "The group id does not exist."),
    "FETCH_SESSION_ID_NOT_FOUND": (
        "errors.FetchSessionIdNotFoundException",
        "The fetch session ID was not found.",
    ),
    "INVALID_FETCH_SESSION_EPOCH": (
        "errors.InvalidFetchSessionEpochException",
        "The fetch session epoch is invalid.",
    ),
    "LISTENER_NOT_FOUND": (
        "errors.ListenerNotFoundException",
        "There is no listener on the leader broker that matches the listener on which metadata "
        "request was processed.",
    ),
    "TOPIC_DELETION_DISABLED": ("errors.TopicDeletionDisabledException", "Topic deletion is disabled."),
    "FENCED_LEADER_EPOCH": (
        "errors.FencedLeaderEpochException",
        "The leader epoch in the request is older than the epoch on the broker.",
    ),
    "UNKNOWN_LEADER_EPOCH": (
        "errors.UnknownLeaderEpochException",
        "The leader epoch in the request is newer than the epoch on the broker.",
    ),
    "UNSUPPORTED_COMPRESSION_TYPE": (
        "errors.UnsupportedCompressionTypeException",
        "The requesting client does not support the compression type of given partition.",
    ),
    "STALE_BROKER_EPOCH": ("errors.StaleBrokerEpochException", "Broker epoch has changed."),
    "OFFSET_NOT_AVAILABLE": (
        "errors.OffsetNotAvailableException",
        "The leader high watermark has not caught up from a recent leader election so the offsets "
        "cannot be guaranteed to be monotonically increasing.",
    ),
    "MEMBER_ID_REQUIRED": (
        "errors.MemberIdRequiredException",
        "The group member needs to have a valid member id before actually entering a consumer group.",
    ),
    "PREFERRED_LEADER_NOT_AVAILABLE": (
        "errors.PreferredLeaderNotAvailableException",
        "The preferred leader was not available.",
    ),
    "GROUP_MAX_SIZE_REACHED": (
        "errors.GroupMaxSizeReachedException",
        "The group has reached its maximum size.",
    ),
    "FENCED_INSTANCE_ID": (
        "errors.FencedInstanceIdException",
        "The broker rejected this static consumer since another consumer with the same "
        "group.instance.id has registered with a different member.id.",
    ),
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": (
        "errors.EligibleLeadersNotAvailableException",
        "Eligible topic partition leaders are not available.",
    ),
    "ELECTION_NOT_NEEDED": (
        "errors.ElectionNotNeededException",
        "Leader election not needed for topic partition.",
    ),
    "NO_REASSIGNMENT_IN_PROGRESS": (
        "errors.NoReassignmentInProgressException",
        "No partition reassignment is in progress.",
    ),
    "GROUP_SUBSCRIBED_TO_TOPIC": (
        "errors.GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
    "INVALID_RECORD": (
        "InvalidRecordException",
        "This record has failed the validation on broker and hence will be rejected.",
    ),
    "UNSTABLE_OFFSET_COMMIT": (
        "errors.UnstableOffsetCommitException",
        "There are unstable offsets that need to be cleared.",
    ),
    "THROTTLING_QUOTA_EXCEEDED": (
        "errors.ThrottlingQuotaExceededException",
        "The throttling quota has been exceeded.",
    ),
    "PRODUCER_FENCED": (
        "errors.ProducerFencedException",
        "There is a newer producer with the same transactionalId which fences the current one.",
    ),
    "RESOURCE_NOT_FOUND": (
        "errors.ResourceNotFoundException",
        "A request illegally referred to a resource that does not exist.",
    ),
    "DUPLICATE_RESOURCE": (
        "errors.DuplicateResourceException",
        "A request illegally referred to the same resource twice.",
    ),
    "UNACCEPTABLE_CREDENTIAL": (
        "errors.UnacceptableCredentialException",
        "Requested credential would not meet criteria for acceptability.",
    ),
    "INCONSISTENT_VOTER_SET": (
        "errors.InconsistentVoterSetException",
        "Indicates that the either the sender or recipient of a voter-only request is not one of "
        "the expected voters.",
    ),
    "INVALID_UPDATE_VERSION": (
        "errors.InvalidUpdateVersionException",
        "The given update version was invalid.",
    ),
    "FEATURE_UPDATE_FAILED": (
        "errors.FeatureUpdateFailedException",
        "Unable to update finalized features due to an unexpected server error.",
    ),
    "PRINCIPAL_DESERIALIZATION_FAILURE": (
        "errors.PrincipalDeserializationException",
        "Request principal deserialization failed during forwarding. This indicates an internal "
        "error on the broker cluster security setup.",
    ),
    "SNAPSHOT_NOT_FOUND": ("errors.SnapshotNotFoundException", "Requested snapshot was not found."),
    "POSITION_OUT_OF_RANGE": (
        "errors.PositionOutOfRangeException",
        "Requested position is not greater than or equal to zero, and less than the size of the snapshot.",
    ),
    "UNKNOWN_TOPIC_ID": ("errors.UnknownTopicIdException", "This server does not host this topic ID."),
    "DUPLICATE_BROKER_REGISTRATION": (
        "errors.DuplicateBrokerRegistrationException",
        "This broker ID is already in use.",
    ),
    "BROKER_ID_NOT_REGISTERED": (
        "errors.BrokerIdNotRegisteredException",
        "The given broker ID was not registered.",
    ),
    "INCONSISTENT_TOPIC_ID": (
        "errors.InconsistentTopicIdException",
        "The log's topic ID did not match the topic ID in the request.",
    ),
    "INCONSISTENT_CLUSTER_ID": (
        "errors.InconsistentClusterIdException",
        "The clusterId in the request does not match that found on the server.",
    ),
    "TRANSACTIONAL_ID_NOT_FOUND": (
        "errors.TransactionalIdNotFoundException",
        "The transactionalId could not be found.",
    ),
    "FETCH_SESSION_TOPIC_ID_ERROR": (
        "errors.FetchSessionTopicIdException",
        "The fetch session encountered inconsistent topic ID usage.",
    ),
    "INELIGIBLE_REPLICA": (
        "errors.IneligibleReplicaException",
        "The new ISR contains at least one ineligible replica.",
    ),
    "NEW_LEADER_ELECTED": (
        "errors.NewLeaderElectedException",
        "The AlterPartition request successfully updated the partition state but the leader has changed.",
    ),
    "OFFSET_MOVED_TO_TIERED_STORAGE": (
        "errors.OffsetMovedToTieredStorageException",
        "The requested offset is moved to tiered storage.",
    ),
    "FENCED_MEMBER_EPOCH": (
        "errors.FencedMemberEpochException",
        "The member epoch is fenced by the group coordinator. The member must abandon all its "
        "partitions and rejoin.",
    ),
    "UNRELEASED_INSTANCE_ID": (
        "errors.UnreleasedInstanceIdException",
        "The instance ID is still used by another member in the consumer group. That member must "
        "leave first.",
    ),
    "UNSUPPORTED_ASSIGNOR": (
        "errors.UnsupportedAssignorException",
        "The assignor or its version range is not supported by the consumer group.",
    ),
    "STALE_MEMBER_EPOCH": (
        "errors.StaleMemberEpochException",
        "The member epoch is stale. The member must retry after receiving its updated member epoch "
        "via the ConsumerGroupHeartbeat API.",
    ),
    "MISMATCHED_ENDPOINT_TYPE": (
        "errors.MismatchedEndpointTypeException",
        "The request was sent to an endpoint of the wrong type.",
    ),
    "UNSUPPORTED_ENDPOINT_TYPE": (
        "errors.UnsupportedEndpointTypeException",
        "This endpoint type is not supported yet.",
    ),
    "UNKNOWN_CONTROLLER_ID": ("errors.UnknownControllerIdException", "This controller ID is not known."),
    "UNKNOWN_SUBSCRIPTION_ID": (
        "errors.UnknownSubscriptionIdException",
        "Client sent a push telemetry request with an invalid or outdated subscription ID.",
    ),
    "TELEMETRY_TOO_LARGE": (
        "errors.TelemetryTooLargeException",
        "Client sent a push telemetry request larger than the maximum size the broker will accept.",
    ),
    "INVALID_REGISTRATION": (
        "errors.InvalidRegistrationException",
        "The controller has considered the broker registration to be invalid.",
    ),
    "TRANSACTION_ABORTABLE": (
        "errors.TransactionAbortableException",
        "The server encountered an error with the transaction. The client can abort the transaction"
        " to continue using this transactional ID.",
    ),
    "INVALID_RECORD_STATE": (
        "errors.InvalidRecordStateException",
        "The record state is invalid. The acknowledgement of delivery could not be completed.",
    ),
    "SHARE_SESSION_NOT_FOUND": ("errors.ShareSessionNotFoundException", "The share session was not found."),
    "INVALID_SHARE_SESSION_EPOCH": (
        "errors.InvalidShareSessionEpochException",
        "The share session epoch is invalid.",
    ),
    "FENCED_STATE_EPOCH": (
        "errors.FencedStateEpochException",
        "The coordinator rejected the request because the state epoch did not match.",
    ),
    "INVALID_VOTER_KEY": (
        "errors.InvalidVoterKeyException",
        "The voter key doesn't match the receiving replica's key.",
    ),
    "DUPLICATE_VOTER": ("errors.DuplicateVoterException", "The voter is already part of the set of voters."),
    "VOTER_NOT_FOUND": ("errors.VoterNotFoundException", "The voter is not part of the set of voters."),
    "INVALID_REGULAR_EXPRESSION": ("errors.InvalidRegularExpression", "The regular expression is not valid."),
    "REBOOTSTRAP_REQUIRED": (
        "errors.RebootstrapRequiredException",
        "Client metadata is stale. The client should rebootstrap to obtain new metadata.",
    ),
    "STREAMS_INVALID_TOPOLOGY": (
        "errors.StreamsInvalidTopologyException",
        "The supplied topology is invalid.",
    ),
    "STREAMS_INVALID_TOPOLOGY_EPOCH": (
        "errors.StreamsInvalidTopologyEpochException",
        "The supplied topology epoch is invalid.",
    ),
    "STREAMS_TOPOLOGY_FENCED": (
        "errors.StreamsTopologyFencedException",
        "The supplied topology epoch is outdated.",
    ),
    "SHARE_SESSION_LIMIT_REACHED": (
        "errors.ShareSessionLimitReachedException",
        "The limit of share sessions has been reached.",
    ),
    "GROUP_DELETION_FAILED": (
        "errors.GroupDeletionFailedException",
        "DeleteGroups could not complete; see the error message on the per-group result for details.",
    ),
    "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED": (
        "errors.StreamsTopologyDescriptionUpdateFailedException",
        "The broker could not process the topology description update; see the error message for details.",
    ),
    "CONTROLLER_ID_NOT_REGISTERED": (
        "errors.ControllerIdNotRegisteredException",
        "The given controller ID was not registered.",
    ),
}
"""By the code's name: the class below `org.apache.kafka.common`, and the text."""

"""A raw client that logs in by SASL PLAIN, and the settings of a broker with ACLs for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka_client.acl import Operation, PatternType, Permission, ResourceType
from kafka_client.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kafka_client.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.raw_client import RawClient

ROOT: Final = "root"
USERS: Final = (ROOT, "alice", "bob")


def password_of(user: str) -> str:
    """Return the user's password."""
    return f"{user}-secret"


def settings_with_logins() -> Mapping[str, object]:
    """Return the settings of a broker where these users log in, and everybody may do everything."""
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in USERS)
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
    }


def settings_with_acls() -> Mapping[str, object]:
    """Return the settings of a broker with ACLs, where root is a super user."""
    return {
        **settings_with_logins(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ROOT}",
    }


class LoggedInClient(RawClient):
    """A client whose user has logged in."""

    def __init__(self, port: int, user: str, *, client_id: str = "raw") -> None:
        super().__init__(port, client_id=client_id)
        assert self.request(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        message = f"\0{user}\0{password_of(user)}".encode()
        assert self.request(SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0

    def allow(
        self,
        resource_type: ResourceType,
        name: str,
        operation: Operation,
        *,
        user: str = "alice",
        pattern: PatternType = PatternType.LITERAL,
        permission: Permission = Permission.ALLOW,
    ) -> None:
        """Create an ACL."""
        creation = AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=pattern,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        (result,) = self.request(CreateAclsRequest(creations=[creation]), 3).results
        assert result.error_code == 0, result.error_message

    def allow_all(self, needs: Iterable[tuple[ResourceType, str, Operation]]) -> None:
        """Create several ACLs for alice."""
        for need in needs:
            self.allow(*need)

    def forget(self, user: str = "alice") -> int:
        """Delete all ACLs of a user. Return how many there were."""
        selection = DeleteAclsFilter(
            resource_type_filter=1,
            pattern_type_filter=1,
            principal_filter=f"User:{user}",
            operation=1,
            permission_type=1,
        )
        (result,) = self.request(DeleteAclsRequest(filters=[selection]), 3).filter_results
        assert result.error_code == 0, result.error_message
        return len(result.matching_acls)

"""The authorizer that the broker's settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.security.authorizer import Authorizer

if TYPE_CHECKING:
    from logd.config.broker import BrokerConfig
    from logd.metadata.image import ClusterImage


def authorizer_of(config: BrokerConfig, image: ClusterImage) -> Authorizer:
    """Return an authorizer with the ACLs of the image."""
    authorizer = Authorizer(
        super_users=config.super_user_names, allows_without_acl=config.allow_everyone_if_no_acl_found
    )
    for pattern, entries in image.acls.items():
        authorizer.set_entries(pattern, entries)
    return authorizer

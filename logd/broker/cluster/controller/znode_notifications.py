"""Changes of settings, users and ACLs by other programs: the controller reads the metadata again.

    /config/changes/config_change_N            names an entity below /config
    /kafka-acl-changes/acl_changes_N           names the pattern of a znode below /kafka-acl
    /kafka-acl-extended-changes/acl_changes_N  names the pattern of a znode below /kafka-acl-extended

Kafka's tools and the controller write such a znode after each change. If an entity's znode differs from the
controller's image, another program has written it, and the controller's next write would be refused. So its
term ends, and the next controller loads all. Notifications are deleted after 15 minutes, as by Kafka. The
newest one tells the time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Final, Protocol, TypeVar

from kafka_client.acl import PatternType, ResourcePattern
from logd.metadata.controller.decision import Decision
from logd.metadata.image import ClusterImage
from logd.metadata.serving import ServingController
from logd.metadata.zookeeper.batches import write_all
from logd.metadata.zookeeper.election import Elected
from logd.metadata.zookeeper.errors import BadZnode, NoNode, ZooKeeperError
from logd.metadata.zookeeper.session.operations import Delete
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.watches import each_children
from logd.metadata.zookeeper.znodes import acl_znodes, paths, znodes

KEPT_MS: Final = 15 * 60 * 1000
"""How long notifications are kept, in ms."""

T = TypeVar("T", bound=Hashable)

log = logging.getLogger("logd.cluster")


class ChangedElsewhere(ZooKeeperError):
    """Another program has changed metadata, so that the controller has to read it again."""

    def __init__(self, path: str) -> None:
        super().__init__(f"another program has changed ZooKeeper's {path}, so all metadata is read again")


class Notified(Protocol[T]):
    """A kind of entity that notifications name."""

    def decode(self, path: str, data: bytes) -> T | None:
        """Return the entity that a notification names, or None to ignore it. Raises BadZnode."""

    def path(self, entity: T) -> str:
        """Return the path of the entity's znode."""

    def value_in(self, image: ClusterImage, entity: T) -> object:
        """Return the entity's value in the image; None if the znode does not count."""

    def stored(self, path: str, data: bytes | None) -> object:
        """Return the value of the entity's znode; `data` is None if there is none. Raises BadZnode."""


class ZnodeNotifications:
    """The notifications during one election. Each of `work` runs until it is cancelled.

    A MillstreamError, such as ChangedElsewhere, ends the controller.
    """

    def __init__(self, session: Session, elected: Elected, serving: ServingController) -> None:
        self._session = session
        self._elected = elected
        self._serving = serving

    def work(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Return the work to be run, by the name of its task."""
        acls = _Acls()
        return {
            "notifications of settings": lambda: self._follow(paths.CONFIG_CHANGES, _Configs()),
            "notifications of ACLs": lambda: self._follow(acl_znodes.CHANGES[PatternType.LITERAL], acls),
            "notifications of prefixed ACLs": lambda: self._follow(
                acl_znodes.CHANGES[PatternType.PREFIXED], acls
            ),
        }

    async def _follow(self, root: str, kind: Notified[T]) -> None:
        checked: frozenset[str] = frozenset()
        async for names in each_children(self._session, root):
            new = [f"{root}/{name}" for name in names if name not in checked]
            if new:
                checked = frozenset(names)
                await self._check_all(new, kind)
                await self._purge([f"{root}/{name}" for name in names])

    async def _check_all(self, notifications: list[str], kind: Notified[T]) -> None:
        values = await self._session.find_all(notifications)
        entities: dict[T, None] = {}
        for path, value in zip(notifications, values, strict=True):
            try:
                entity = None if value is None else kind.decode(path, value[0])
            except BadZnode as error:
                log.warning("a notification is ignored: %s", error)
                continue
            if entity is not None:
                entities[entity] = None
        for each in entities:
            await self._check(each, kind)

    async def _check(self, entity: T, kind: Notified[T]) -> None:
        """Raise ChangedElsewhere if the entity's znode differs from the controller's image."""
        image, path = self._serving.controller.image, kind.path(entity)
        while (value := kind.value_in(image, entity)) is not None:
            read = await self._session.find(path)
            if kind.stored(path, None if read is None else read[0]) == value:
                return
            # The controller's own write may be under way: then the image differs after it.
            await self._serving.do(lambda _: Decision([], None))
            if kind.value_in(image, entity) == value:
                raise ChangedElsewhere(path)

    async def _purge(self, notifications: list[str]) -> None:
        """Delete the notifications that are older by `KEPT_MS` than the newest one."""
        values = await self._session.find_all(notifications)
        times = {
            path: value[1].ctime_ms
            for path, value in zip(notifications, values, strict=True)
            if value is not None
        }
        newest = max(times.values(), default=0)
        old = [Delete(path) for path, time_ms in times.items() if time_ms < newest - KEPT_MS]
        try:
            await write_all(self._session, self._elected, old)
        except NoNode as error:
            log.debug("somebody else deletes notifications as well: %s", error)


class _Configs:
    """The entities below /config by paths such as `topics/T`. Others than those of the image do not count."""

    def decode(self, path: str, data: bytes) -> str | None:
        entity = znodes.decode_config_change(path, data)
        return entity if entity.count("/") == 1 else None

    def path(self, entity: str) -> str:
        return f"{paths.CONFIG}/{entity}"

    def value_in(self, image: ClusterImage, entity: str) -> object:
        kind, _, name = entity.partition("/")
        if kind == "topics":
            topic = image.topics.get(name)
            return None if topic is None else topic.configs
        if kind == "brokers":
            return image.broker_configs.get("" if name == paths.DEFAULT_ENTITY else name, {})
        if kind == "users" and name != paths.DEFAULT_ENTITY:
            return image.user_configs.get(paths.desanitized(name), {})
        return None

    def stored(self, path: str, data: bytes | None) -> object:
        return {} if data is None else znodes.decode_config(path, data)


class _Acls:
    """The patterns that ACLs are about."""

    def decode(self, path: str, data: bytes) -> ResourcePattern:
        return acl_znodes.decode_change(path, data)

    def path(self, entity: ResourcePattern) -> str:
        return acl_znodes.path_of(entity)

    def value_in(self, image: ClusterImage, entity: ResourcePattern) -> object:
        return image.acls.get(entity, ())

    def stored(self, path: str, data: bytes | None) -> object:
        return () if data is None else acl_znodes.decode_entries(path, data)

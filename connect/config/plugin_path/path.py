"""PluginPath: what the folders of `plugin.path` offer, and the classes there."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connect.config.plugin_path.folder import PluginFolder, plugin_folders
from connect.config.plugin_path.private_modules import PrivateModules
from connect.errors import ConnectError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """A class that a plugin has under a name."""

    name: str
    reference: str
    """`module:Class`."""
    plugin: PluginFolder

    def load(self) -> Any:
        """Return the object, imported if it is not yet. Raises ConnectError, with the cause."""
        try:
            loaded = PrivateModules.of(self.plugin).load(self.reference)
        except (Exception, SystemExit) as e:
            raise _unloadable(self.plugin, self.reference, e) from e
        if self.plugin.version and getattr(loaded, "VERSION", None) == "0":
            loaded.VERSION = self.plugin.version  # it has none of its own
        return loaded


class PluginPath:
    """The plugins of some folders. `rescan` notices what has changed on disk."""

    def __init__(self) -> None:
        self._entries: dict[Path, None] = {}
        self._plugins: list[PluginFolder] = []
        self._discovered: dict[tuple[str, tuple[type, ...]], list[Offer]] = {}
        self._logged: set[str] = set()

    def use(self, entries: Iterable[str]) -> None:
        """Add folders, and look into all of them."""
        self._entries |= dict.fromkeys(Path(entry.strip()).absolute() for entry in entries if entry.strip())
        self.rescan()

    def rescan(self) -> bool:
        """Look into the folders again. Return True if a plugin has come, gone or changed."""
        plugins: list[PluginFolder] = []
        for entry in self._entries:
            try:
                plugins.extend(plugin_folders(entry))
            except OSError as e:
                self.tell(f"plugin.path: {entry} cannot be read: {e.strerror or e}")
        has_changed = plugins != self._plugins
        self._plugins = plugins
        return has_changed

    def offers(self, group: str, bases: tuple[type, ...]) -> list[Offer]:
        """Return what there is of an entry points' group; without entry points, all subclasses of `bases`.

        A plugin that cannot be imported is told in the log, and left out.
        """
        return [offer for plugin in self._plugins for offer in self._offers(plugin, group, bases)]

    def named(self, name: str, group: str, bases: tuple[type, ...]) -> list[Offer]:
        """Return the offers of a name: an entry point's, a class's, or `module:Class`."""
        offers = [offer for offer in self.offers(group, bases) if name in _names(offer)]
        if not offers and (":" in name or "." in name):
            offers = self.having(name, name.partition(":")[0].partition(".")[0])
        return offers

    def having(self, reference: str, module: str) -> list[Offer]:
        """Return `reference` in each plugin that has its first module, without loading it."""
        return [Offer(reference, reference, each) for each in self._plugins if module in each.modules]

    def _offers(self, plugin: PluginFolder, group: str, bases: tuple[type, ...]) -> list[Offer]:
        if plugin.entry_points:
            return [Offer(name, value, plugin) for kind, name, value in plugin.entry_points if kind == group]
        key = (plugin.fingerprint, bases)
        if key not in self._discovered:
            self._discovered[key] = list(self._discover(plugin, bases))
        return self._discovered[key]

    def _discover(self, plugin: PluginFolder, bases: tuple[type, ...]) -> Iterator[Offer]:
        """Yield the public classes of a plugin without entry points."""
        for name in plugin.own_modules():
            try:
                module = PrivateModules.of(plugin).module(name)
            except (Exception, SystemExit) as e:
                self.tell(str(_unloadable(plugin, name, e)))
                continue
            for attribute, value in vars(module).items():
                is_own = inspect.isclass(value) and value.__module__.startswith(module.__name__)
                if is_own and issubclass(value, bases) and not attribute.startswith("_"):
                    yield Offer(attribute, f"{name}:{attribute}", plugin)

    def tell(self, problem: str) -> None:
        """Log a plugin's problem, once."""
        if problem not in self._logged:
            self._logged.add(problem)
            _log.warning("%s", problem)


def _names(offer: Offer) -> set[str]:
    module, _, attribute = offer.reference.partition(":")
    short = offer.name.rpartition(".")[2]
    names = {offer.name, short, short.removesuffix("Connector"), offer.reference}
    return names | {f"{module}.{attribute}"} if attribute else names


def _unloadable(plugin: PluginFolder, reference: str, error: BaseException) -> ConnectError:
    frames = traceback.extract_tb(error.__traceback__)
    place = f", {frames[-1].filename} line {frames[-1].lineno}" if frames else ""
    return ConnectError(f"the plugin {plugin.location} cannot be loaded: {reference}: {error!r}{place}")


PLUGIN_PATH = PluginPath()
"""The plugins of this process. A worker adds the folders of its `plugin.path`."""

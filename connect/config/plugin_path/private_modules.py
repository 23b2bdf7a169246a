"""PrivateModules: a plugin's modules in this process, under a private name, so that they shadow none.

A package `weather` of a plugin is the module `_plugin_weather_1a2b.weather`. The plugin's own `import`
statements see it as `weather`: its modules have an `__import__` of their own, which looks for the plugin's
modules first. So two versions of one plugin, and two plugins with modules of one name, run side by side. The
standard library and the worker's own packages are the worker's for every plugin.
"""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from connect.config.plugin_path.folder import PluginFolder

_SHARED = {"connect", "kafka_client", "millstream", "plugins", "streams", "mirror", "logd"}
_BY_PACKAGE: dict[str, PrivateModules] = {}


class PrivateModules:
    """The modules of one plugin, as its files were at one moment."""

    def __init__(self, plugin: PluginFolder) -> None:
        self.plugin = plugin
        self._names = plugin.modules - _SHARED - sys.stdlib_module_names
        stem = re.sub(r"\W", "_", plugin.location.stem)
        self.package = f"_plugin_{stem}_{plugin.fingerprint}"
        """The private name of the package that has all modules of the plugin."""
        self._builtins = {**vars(builtins), "__import__": self._import}

    @classmethod
    def of(cls, plugin: PluginFolder) -> PrivateModules:
        """Return the modules of a plugin; the same ones as long as its files are the same."""
        modules = cls(plugin)
        return _BY_PACKAGE.get(modules.package) or modules._enter()

    def load(self, reference: str) -> Any:
        """Return the plugin's object `module:Name`. Raises what its import raises, and AttributeError."""
        name, _, attribute = reference.partition(":") if ":" in reference else reference.rpartition(".")
        target: Any = self.module(name)
        for part in attribute.split("."):
            target = getattr(target, part)
        return target

    def module(self, name: str) -> ModuleType:
        """Import a module of the plugin by its own name. Raises ImportError, and what the module raises."""
        importlib.invalidate_caches()
        return importlib.import_module(f"{self.package}.{name}")

    def _enter(self) -> PrivateModules:
        package = ModuleType(self.package)
        package.__path__ = [str(self.plugin.folder)]
        sys.modules[self.package] = package
        _BY_PACKAGE[self.package] = self
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        return self

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import as the statement does: the plugin's own modules first."""
        top = name.partition(".")[0]
        if level or top not in self._names:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        own = f"{self.package}.{name}"
        if fromlist:
            return builtins.__import__(own, globals, locals, fromlist, 0)
        importlib.import_module(own)
        return sys.modules[f"{self.package}.{top}"]

    def prepare(self, module: ModuleType) -> None:
        """Give a module of the plugin the plugin's `__import__`."""
        vars(module)["__builtins__"] = self._builtins


class _Finder:
    """Finds the modules of plugins, and nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        modules = _BY_PACKAGE.get(name.partition(".")[0])
        if modules is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, modules)
        return spec


class _Loader(SourceFileLoader):
    """Loads a module's source with the `__import__` of its plugin."""

    def __init__(self, name: str, path: str, modules: PrivateModules) -> None:
        super().__init__(name, path)
        self._modules = modules

    def exec_module(self, module: ModuleType) -> None:
        self._modules.prepare(module)
        super().exec_module(module)

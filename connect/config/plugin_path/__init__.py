"""Plugins in the folders of `plugin.path`: found, told apart by version, and imported without shadowing any.

The entries of `plugin.path` are folders. A plugin in one of them is a file, a package or a folder:

    orders.py            one file
    flights/__init__.py  a package
    weather-1.0/         modules with libraries, as in a venv
    weather-1.1/         another version of it
"""

from connect.config.plugin_path.choice import loaded, newest, version_range
from connect.config.plugin_path.folder import PluginFolder
from connect.config.plugin_path.path import PLUGIN_PATH, Offer, PluginPath
from connect.config.plugin_path.versions import VersionRange, version_key

__all__ = [
    "PLUGIN_PATH",
    "Offer",
    "PluginFolder",
    "PluginPath",
    "VersionRange",
    "loaded",
    "newest",
    "version_key",
    "version_range",
]

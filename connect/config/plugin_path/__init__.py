"""Plugins in the folders of `plugin.path`: found, told apart by version, and imported without shadowing any.

folders/               an entry of plugin.path
  orders.py            a plugin of one file
  flights/__init__.py  a plugin that is a package
  weather-1.0/         a folder with modules of its own: an unpacked wheel, `pip install --target`, a venv
  weather-1.1/         another version of it
"""

from connect.config.plugin_path.folder import PluginFolder
from connect.config.plugin_path.path import PLUGIN_PATH, Offer, PluginPath
from connect.config.plugin_path.versions import VersionRange, version_key

__all__ = ["PLUGIN_PATH", "Offer", "PluginFolder", "PluginPath", "VersionRange", "version_key"]

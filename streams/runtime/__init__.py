"""The runtime: tasks, their restore and commit, the group's assignment, and the application around them."""

from __future__ import annotations

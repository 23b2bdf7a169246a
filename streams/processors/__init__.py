"""Operators: functions that, wired into a task, become the closures its records pass through."""

from __future__ import annotations

"""How long things take in a history, in ms, and who is not a broker in it."""

from __future__ import annotations

SESSION_MS = 600
HEARTBEAT_MS = 120
REGISTER_MS = 150
TICK_MS = 60
LAG_MS = 300
REQUEST_MS = 200
"""After which an answer is not waited for any more."""
CONTROLLER = 0

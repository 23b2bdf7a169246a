"""The answers to probes of an application: whether it is alive, and whether it processes records."""

from __future__ import annotations

from streams.http.application import Application

_RUNNING = "RUNNING"
_LIVE_STATES = ("CREATED", "REBALANCING", _RUNNING, "PENDING_SHUTDOWN")


def liveness(app: Application) -> str | None:
    """Return why the application needs a restart, or None if it does not."""
    if app.state.value in _LIVE_STATES:
        return None
    return f"the application is in the state {app.state.value}"


def readiness(app: Application) -> str | None:
    """Return why the application does not process records or answer queries now, or None if it does.

    A paused application is ready: an operator has paused it, and it answers queries.
    """
    return None if app.state.value == _RUNNING else f"the application is in the state {app.state.value}"

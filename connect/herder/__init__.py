"""The herder: which connectors and tasks there are, and what state they should have. It does no I/O."""

from connect.herder.config_state import ConfigState
from connect.herder.herder import Herder
from connect.herder.requests import RestartRequest
from connect.herder.runs import ConnectorRun, Runs, TargetState, TaskRun
from connect.herder.session_key import SessionKey

__all__ = [
    "ConfigState",
    "ConnectorRun",
    "Herder",
    "RestartRequest",
    "Runs",
    "SessionKey",
    "TargetState",
    "TaskRun",
]

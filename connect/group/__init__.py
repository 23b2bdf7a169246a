"""The group of distributed workers: its messages and its assignor (KIP-415). It does no I/O."""

from connect.group.assignor import CooperativeAssignor
from connect.group.eager import assign_eagerly
from connect.group.messages import Assignment, WorkerState
from connect.group.units import CONNECTOR, Unit

__all__ = ["CONNECTOR", "Assignment", "CooperativeAssignor", "Unit", "WorkerState", "assign_eagerly"]

"""The check of a connector's config without a broker or worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.errors import MillstreamError
from connect.runtime.config_report import report_config
from connect.runtime.connector_check import check_config
from connect.runtime.worker_config import WorkerConfig


def errors_of(worker: WorkerConfig, raw: Mapping[str, Any]) -> list[str]:
    """Return all errors of a connector's config. Keys without effect are logged as warnings.

    Values of variables (`${file:...}`) are looked up as on this machine's worker.
    """
    try:
        report = report_config(worker, raw)
        errors = [error for each in report["configs"] for error in each["value"]["errors"]]
        if not errors:
            check_config(worker, raw)
    except MillstreamError as e:
        return [str(e)]
    return errors

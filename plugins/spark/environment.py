"""The environment variables of a driver process; works without pyspark."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def package_folder() -> Path:
    """Where the packages of this distribution lie: site-packages, or the checkout of an editable install."""
    return Path(__file__).resolve().parents[2]


def worker_environment() -> dict[str, str]:
    """Variables by which the driver's Python workers are this Python and find our packages.

    Spark finds `pyspark_*` modules by walking the workers' path, so that an import hook (as some editable
    installs use) is not enough: the folder itself has to be on PYTHONPATH.
    """
    path = [str(package_folder()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def java_found() -> bool:
    """Whether there is a Java to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None

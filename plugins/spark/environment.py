"""The environment variables of a driver process; works without pyspark."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def package_folder() -> Path:
    """Return the folder of this distribution's packages: site-packages, or an editable install's checkout."""
    return Path(__file__).resolve().parents[2]


def worker_environment() -> dict[str, str]:
    """Return the variables that make the driver's Python workers use this Python and find our packages.

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
    """Return True if JAVA_HOME or the path has a Java to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin" if home else None) is not None

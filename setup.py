"""The compiled modules. Everything else about the build is in pyproject.toml.

Each module is one Python file that Cython compiles; where there is no C compiler the install goes on without,
and the same files run as plain Python.
"""

from __future__ import annotations

from Cython.Build import cythonize
from setuptools import Extension, setup

MODULES = (
    "logd.records.reader",
    "logd.records.writer",
)
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "freethreading_compatible": True,
}


def extension(module: str) -> Extension:
    """Return what compiles one module; it may fail."""
    return Extension(
        module,
        [module.replace(".", "/") + ".py"],
        extra_compile_args=["-O3", "-g0", "-fwrapv"],
        optional=True,
    )


setup(
    ext_modules=cythonize(
        [extension(module) for module in MODULES],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
    )
)

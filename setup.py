"""The compiled modules. Everything else about the build is in pyproject.toml.

Each module is one Python file that Cython compiles. Without a C compiler the install goes on, a line says
so, and the same files run as plain Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODULES = (
    "kafka_client.records.partitioning",
    "kafka_client.records.reader",
    "kafka_client.records.writer",
    "kafka_client.records.xxh32",
    "kafka_client.wire.produce",
    "streams.state.entries",
    "streams.state.join_records",
)
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "freethreading_compatible": True,
    # Branches on `cython.compiled` are meant to be unreachable in one of the forms.
    "warn.unreachable": False,
}


class BuildExtensions(build_ext):
    """Compiles what it can, and says in one line what it could not."""

    def run(self) -> None:
        # Where no compiler works, distutils lets an optional extension pass; cythonize drops that attribute.
        for extension in self.extensions:
            extension.optional = True
        super().run()
        missing = [module for module in MODULES if not Path(self.get_ext_fullpath(module)).exists()]
        if missing:
            print(
                f"millstream: not compiled, so as plain Python many times slower: {', '.join(missing)}. "
                "Install a C compiler and Python's headers, then install Millstream again.",
                file=sys.stderr,
            )

    def warn(self, msg: str) -> None:
        """Say nothing of a single module: `run` names all that failed in one line."""


def extension(module: str) -> Extension:
    """Return what compiles one module."""
    return Extension(
        module,
        [module.replace(".", "/") + ".py"],
        # -O3 unrolls the short loops of varints, and walks records a quarter slower.
        extra_compile_args=["-O2", "-g0", "-fwrapv"],
    )


setup(
    cmdclass={"build_ext": BuildExtensions},
    ext_modules=cythonize(
        [extension(module) for module in MODULES],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        quiet=True,
    ),
)

"""Compiles each module that has a .pxd beside it; all of them, or, without a compiler, none.

TIDEGATE_CYTHON=off      never compile
TIDEGATE_CYTHON=require  fail rather than fall back
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("TIDEGATE_CYTHON", "auto")


def extensions() -> list[Extension]:
    """Return one extension for each module with a .pxd; none when compiling is off or fails."""
    if MODE not in ("off", "auto", "require"):
        raise SystemExit(f"TIDEGATE_CYTHON is {MODE!r}: off, auto or require")
    sources = [pxd.with_suffix(".py") for pxd in sorted(Path("gateway").rglob("*.pxd"))]
    if MODE == "require" and not sources:
        raise SystemExit("TIDEGATE_CYTHON=require, but there is no .pxd file to compile")
    if MODE == "off" or not sources:
        return []
    try:
        return cythonized(sources)
    except Exception as failure:
        if MODE == "require":
            raise
        print(f"not compiling: {failure}")
        return []


def cythonized(sources: list[Path]) -> list[Extension]:
    """Return the extensions of these modules, translated to C."""
    from Cython.Build import cythonize

    modules = [
        Extension(
            ".".join(source.with_suffix("").parts),
            [str(source)],
            extra_compile_args=["-O2", "-g0"],  # a tenth less code than -O3
        )
        for source in sources
    ]
    directives = {
        "language_level": "3",
        "annotation_typing": False,  # the .pxd alone gives types
        "auto_pickle": False,  # a tenth of all code, for what nobody pickles
        "binding": False,  # functions without signatures and annotations: another tenth
        "nonecheck": True,  # None raises, as in Python, instead of crashing
    }
    translated: list[Extension] = cythonize(  # type: ignore[no-untyped-call]  # not annotated
        modules, build_dir="build/cython", compiler_directives=directives
    )
    return translated


class AllOrNothing(build_ext):
    """Compiled modules share struct layouts, so a half-compiled package cannot be imported."""

    def run(self) -> None:
        """Build every extension or remove what was built."""
        try:
            super().run()
        except Exception as failure:
            if MODE == "require":
                raise
            print(f"not compiling: {failure}")
            for built in map(Path, self.get_outputs()):
                built.unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing})

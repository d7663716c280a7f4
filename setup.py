"""Compiles all modules that have a .pxd beside them into one library; none without a compiler.

`gateway/compiled.py` has Python load them from there.

TIDEGATE_CYTHON=auto     compile if Cython and a compiler are there (the default, also when empty)
TIDEGATE_CYTHON=off      never compile
TIDEGATE_CYTHON=require  compile, or fail

Where both are there, what cannot be compiled fails the build: a slower gateway would be no answer.
"""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import CompileError, LinkError, PlatformError
from setuptools.modified import newer_group

MODE = os.environ.get("TIDEGATE_CYTHON") or "auto"
PROCESSORS = len(os.sched_getaffinity(0))
TRANSLATED = Path("build/cython")
BUILD_FILE = Path("gateway/build.txt")
ARCHIVED = Path(".git_archival.txt")
FEW = 8
"""Modules that are translated sooner than other processes are started for them."""

COMPILER_OPTIONS = [
    "-g0",
    "-fno-asynchronous-unwind-tables",  # 6 % of the code, for debuggers alone
    "-Wno-all",  # nobody reads what Python's own flags warn of; an eighth of the compiler's time
    "-DCYTHON_CLINE_IN_TRACEBACK=0",  # nobody reads the C; a twentieth of the compiler's time
    "-Werror=incompatible-pointer-types",  # an error for newer compilers in any case
    "-ffunction-sections",  # each function on its own, for the linker to leave it out or share it
]

# A linker that can do it takes one of several equal functions: each of 77 modules has what Cython
# adds to it, a tenth of all code. "safe" leaves those alone whose addresses may be compared.
LINKER_OPTIONS = ["-Wl,--gc-sections"]
SHARING_OPTIONS = [*LINKER_OPTIONS, "-fuse-ld=gold", "-Wl,--icf=safe"]

# Two thirds of the time that -O2 takes, for 1 % of the speed; the others save 4 % of the code.
FAST = ["-O1", "-fcrossjumping", "-foptimize-sibling-calls"]
SMALL = ["-Os"]  # two thirds of the code; a burst of messages would take a fifth more
# What each message of a burst runs through is compiled to be fast, all else to be small: these
# take 97 of 100 instructions that the library executes for a message to one subscriber.
HOT = (
    *("gateway/broker/broker.", "gateway/broker/publishing/", "gateway/server/"),
    *("gateway/mqtt/acknowledgement_batch.", "gateway/mqtt/codec/publish."),
    *("gateway/mqtt/connection.", "gateway/mqtt/framing.", "gateway/mqtt/output."),
    *("gateway/mqtt/publication.", "gateway/mqtt/publish_encoder."),
    *("gateway/session/inflight.", "gateway/session/sending."),
    *("gateway/session/session.", "gateway/session/span."),
)

LIBRARY = "gateway._compiled"
# What is imported by the library's own name: a module whose docstring lists the others.
CONTENTS = """\
#include <Python.h>

static struct PyModuleDef contents = {{
    PyModuleDef_HEAD_INIT, .m_name = "{library}", .m_doc = "{modules}"
}};

PyMODINIT_FUNC PyInit__compiled(void)
{{
    return PyModuleDef_Init(&contents);
}}
"""


def extensions() -> list[Extension]:
    """Return the library of all modules with a .pxd; none when compiling is off."""
    if MODE not in ("off", "auto", "require"):
        raise SystemExit(f"TIDEGATE_CYTHON is {MODE!r}: off, auto or require")
    sources = [pxd.with_suffix(".py") for pxd in sorted(Path("gateway").rglob("*.pxd"))]
    if MODE == "require" and not sources:
        raise SystemExit("TIDEGATE_CYTHON=require, but there is no .pxd file to compile")
    if MODE == "off" or not sources:
        return []
    if MODE == "auto" and find_spec("Cython") is None:
        print("not compiling: Cython is not installed")
        return []
    return [Extension(LIBRARY, [*cythonized(sources), contents(sources)])]


def cythonized(sources: list[Path]) -> list[str]:
    """Return the C files that these modules are translated to."""
    from Cython.Build import cythonize
    from Cython.Compiler import Options

    Options.docstrings = False  # nobody reads those of the library
    modules = [Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in sources]
    directives = {
        "language_level": "3",
        "annotation_typing": False,  # the .pxd alone gives types
        "auto_pickle": False,  # a tenth of all code, for what nobody pickles
        "binding": False,  # functions without signatures and annotations: another tenth
        "nonecheck": True,  # None raises, as in Python, instead of crashing
    }
    translated = cythonize(  # type: ignore[no-untyped-call]  # not annotated
        modules,
        build_dir=str(TRANSLATED),
        compiler_directives=directives,
        nthreads=PROCESSORS if len(modules) > FEW else 0,
    )
    return [source for module in translated for source in module.sources]


def contents(sources: list[Path]) -> str:
    """Return the C file that says which modules are in the library."""
    modules = " ".join(".".join(path.with_suffix("").parts) for path in sources)
    text = CONTENTS.format(library=LIBRARY, modules=modules)
    path = TRANSLATED.joinpath(*LIBRARY.split(".")).with_suffix(".c")
    if not path.exists() or path.read_text() != text:  # else nothing is to be linked again
        path.write_text(text)
    return str(path)


class OneLibrary(build_ext):
    """Compiled modules share struct layouts: a half-compiled package cannot be imported."""

    def build_extensions(self) -> None:
        """Build the library, or nothing where `auto` finds no compiler."""
        if MODE == "auto" and (missing := self.missing()):
            print(f"not compiling: {missing}")
            self.extensions = self.distribution.ext_modules = []
            return
        super().build_extensions()

    def missing(self) -> str:
        """Return why not even a file that only includes Python's headers compiles here, or ""."""
        trial = TRANSLATED / "trial.c"
        trial.write_text("#include <Python.h>\n")
        try:
            self.compiler.compile([str(trial)], output_dir=self.build_temp)
        except (CompileError, PlatformError) as error:
            return f"no C compiler with Python's headers ({error})"
        return ""

    def build_extension(self, ext: Extension) -> None:
        """Compile each C file that has changed, and link all of them."""
        with ThreadPoolExecutor(PROCESSORS) as compilers:  # each waits for a process
            objects = list(compilers.map(self.compiled, map(str, ext.sources)))
        library = self.get_ext_fullpath(ext.name)
        if self.force or newer_group(objects, library, "newer"):
            self.compiler.link_shared_object(
                objects,
                library,
                libraries=self.get_libraries(ext),
                extra_postargs=self.linker_options(objects[-1]),
            )

    def linker_options(self, trial: str) -> list[str]:
        """Return those for a small library that the linker here understands, tried on an object."""
        target = str(Path(self.build_temp, "trial.so"))
        for options in (SHARING_OPTIONS, LINKER_OPTIONS):
            with suppress(LinkError):
                self.compiler.link_shared_object([trial], target, extra_postargs=options)
                return options
        return []

    def compiled(self, source: str) -> str:
        """Return the object file of a C file."""
        target = Path(self.build_temp, source).with_suffix(".o")
        if self.force or newer_group([source, "setup.py"], target, "newer"):
            self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                macros=initializer(Path(source)),
                extra_postargs=[*COMPILER_OPTIONS, *optimization(source)],
            )
        return str(target)


def optimization(source: str) -> list[str]:
    """Return what the compiler is to make of a C file: fast code or small code."""
    return FAST if Path(source).relative_to(TRANSLATED).as_posix().startswith(HOT) else SMALL


class BuildModules(build_py):
    """Has the version and the commit beside the modules."""

    def run(self) -> None:
        """Write them first, so that they are taken along."""
        write_build_file(self.distribution.get_version())
        super().run()


class SourceDistribution(sdist):
    """Takes the version and the commit along, which cannot be found out without Git."""

    def run(self) -> None:
        """Write them first."""
        write_build_file(self.distribution.get_version())
        super().run()


def write_build_file(version: str) -> None:
    """Write the version and the commit for `gateway/version.py`; leave what a release brought."""
    if Path(".git").exists():
        command = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # fixed
        commit = done.stdout.strip()
    elif BUILD_FILE.exists():
        return
    else:
        commit = archived_commit()
    BUILD_FILE.write_text(f"{version}\n{commit}\n")


def archived_commit() -> str:
    """Return the commit that `git archive` wrote, "" where it did not."""
    with suppress(FileNotFoundError):
        found = re.search(r"^node: ([0-9a-f]{40})$", ARCHIVED.read_text(), re.MULTILINE)
        if found:
            return found[1]
    return ""


class Translate(Command):
    """Translates all modules with a .pxd to C, and compiles nothing: a check of seconds."""

    user_options: ClassVar[list[tuple[str, str, str]]] = []

    def initialize_options(self) -> None:
        """Has no options."""

    def finalize_options(self) -> None:
        """Has no options."""

    def run(self) -> None:
        """Do nothing more: `extensions()` has translated, or the call has failed."""


def initializer(source: Path) -> list[tuple[str, str]]:
    """Return a macro that gives a module's initializer the whole name: there are two `runs`."""
    parts = source.relative_to(TRANSLATED).with_suffix("").parts
    if ".".join(parts) == LIBRARY:
        return []
    return [(f"PyInit_{parts[-1]}", f"PyInit_{'_'.join(parts)}")]


if __name__ == "__main__":  # not where a process that translates imports this
    setup(
        ext_modules=extensions(),
        cmdclass={
            "build_ext": OneLibrary,
            "build_py": BuildModules,
            "sdist": SourceDistribution,
            "translate": Translate,
        },
    )

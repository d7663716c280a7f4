"""Loads the compiled modules from their common shared library, if it exists."""

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

LIBRARY = "gateway._compiled"

FOLDER = str(Path(__file__).parent)
"""The path of this package's own library."""


class CompiledModule(ExtensionFileLoader):
    """Loads one module of the library, whose initializer has the module's full name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module, not yet executed."""
        # Python calls the initializer by the last part of the specification's name.
        whole = f"{spec.parent}.{spec.name.replace('.', '_')}"
        module = super().create_module(ModuleSpec(whole, self, origin=self.path))
        module.__name__ = spec.name
        return module


class Library:
    """Finds the modules in the library, each of which is loaded when it is imported."""

    def __init__(self, path: str, modules: frozenset[str]) -> None:
        self._path = path
        self._modules = modules

    def find_spec(self, name: str, *_: object, **__: object) -> ModuleSpec | None:
        """Return the specification of a module in the library, None for any other."""
        if name not in self._modules:
            return None
        spec = ModuleSpec(name, CompiledModule(name, self._path), origin=self._path)
        spec.has_location = True
        return spec


def build() -> str:
    """Return "compiled" if modules come from the library, otherwise "plain"."""
    found = any(isinstance(finder, Library) for finder in sys.meta_path)
    return "compiled" if found else "plain"


def load_from_library(library: str = LIBRARY, folder: str = FOLDER) -> None:
    """Have Python load modules from the library; without a library, change nothing.

    Only `folder` is searched: an editable install makes the library of another checkout importable
    under the same name, and its modules are not ours.
    """
    spec = PathFinder.find_spec(library, [folder])
    if spec is None or spec.loader is None:
        return
    contents = module_from_spec(spec)
    spec.loader.exec_module(contents)
    modules = frozenset(str(contents.__doc__).split())
    sys.meta_path.insert(0, Library(str(contents.__file__), modules))

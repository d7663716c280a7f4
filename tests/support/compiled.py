"""Which modules with a .pxd are compiled in place, and which libraries are out of date."""

import importlib
import re
from pathlib import Path

GATEWAY = Path(__file__).parents[2] / "gateway"


def stale(package: Path = GATEWAY) -> list[Path]:
    """Return the libraries that were not made from the modules of the package as they are now."""
    return [
        library for library in sorted(package.rglob("*.so")) if not up_to_date(library, package)
    ]


def up_to_date(library: Path, package: Path) -> bool:
    """Tell whether a library lists the modules that have a .pxd and is not older than any."""
    declarations = list(package.rglob("*.pxd"))
    listed = re.escape(" ".join(names(package)).encode())
    sources = [*declarations, *(pxd.with_suffix(".py") for pxd in declarations)]
    return (
        all(source.exists() for source in sources)
        and re.search(rb"(?<![\w. ])%b\0" % listed, library.read_bytes()) is not None
        and max(source.stat().st_mtime for source in sources) <= library.stat().st_mtime
    )


def names(package: Path) -> list[str]:
    """Return the names of the modules that have a .pxd, in the order that a library has."""
    return [
        ".".join(pxd.with_suffix("").relative_to(package.parent).parts)
        for pxd in sorted(package.rglob("*.pxd"))
    ]


def not_compiled(package: Path = GATEWAY) -> list[str]:
    """Return the names of the modules with a .pxd that do not load from a library."""
    loaded = {name: str(importlib.import_module(name).__file__) for name in names(package)}
    return [name for name, file in loaded.items() if not file.endswith(".so")]

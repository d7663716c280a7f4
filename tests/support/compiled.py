"""Which modules with a .pxd are compiled in place, and which of those are out of date."""

import importlib
from pathlib import Path

GATEWAY = Path(__file__).parents[2] / "gateway"


def stale(package: Path = GATEWAY) -> list[Path]:
    """Return the compiled modules that Python would load though their source is newer or gone."""
    return [
        compiled
        for compiled in sorted(package.rglob("*.so"))
        if not all(not_after(source, compiled) for source in sources(compiled))
    ]


def sources(compiled: Path) -> tuple[Path, Path]:
    """Return the module and the declarations that the file was made from."""
    module = compiled.with_name(compiled.name.partition(".")[0] + ".py")
    return module, module.with_suffix(".pxd")


def not_after(source: Path, compiled: Path) -> bool:
    """Tell whether the source is there and was last changed before it was compiled."""
    return source.exists() and source.stat().st_mtime <= compiled.stat().st_mtime


def not_compiled(package: Path = GATEWAY) -> list[str]:
    """Return the names of the modules with a .pxd that do not load from a compiled file."""
    names = [
        ".".join(pxd.with_suffix("").relative_to(package.parent).parts)
        for pxd in sorted(package.rglob("*.pxd"))
    ]
    loaded = {name: str(importlib.import_module(name).__file__) for name in names}
    return [name for name, file in loaded.items() if not file.endswith(".so")]

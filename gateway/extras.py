"""How to install an extra, reported where it is missing."""

import sys


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra's packages for this Tidegate.

    It names the packages and never Tidegate, which comes from a release file or a checkout.
    """
    import shlex  # not in every gateway's memory

    packages = _packages(extra) or [f"the packages of the extra {extra}"]
    return f"{shlex.quote(sys.executable)} -m pip install {' '.join(map(shlex.quote, packages))}"


def _packages(extra: str) -> list[str]:
    """Return the requirements that only this extra has; none if nothing is installed."""
    from importlib import metadata

    try:
        requirements = metadata.requires("tidegate") or []
    except metadata.PackageNotFoundError:
        return []
    ending = f'extra == "{extra}"'
    return [
        each.removesuffix(ending).removesuffix(" and ").strip("; ")
        for each in (requirement.replace("'", '"') for requirement in requirements)
        if each.endswith(ending)
    ]

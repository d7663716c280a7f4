"""What a MicroPython image freezes: `make FROZEN_MANIFEST=.../firmware/manifest.py`."""

# MicroPython's build gives both functions to this file.
package("node")  # type: ignore[name-defined]  # noqa: F821
module("main.py")  # type: ignore[name-defined]  # noqa: F821

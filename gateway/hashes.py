"""Hashes that Python has by itself: hashlib has the same, and loads OpenSSL, which takes 4 MiB."""

import sys
from _blake2 import blake2b

if sys.version_info >= (3, 12):
    from _sha2 import sha256
else:
    from _sha256 import sha256  # type: ignore[import-not-found]  # typeshed has it not

__all__ = ["blake2b", "sha256"]

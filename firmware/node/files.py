"""Files of which the old or the new content is there at any moment."""

import os


def replace(path: str, content: bytes) -> None:
    """Write a file in place of another; where that takes two steps, the new one is in reach."""
    with open(path + ".new", "wb") as file:
        file.write(content)
    try:
        os.rename(path + ".new", path)
    except OSError:  # FAT does not replace a file
        os.remove(path)
        os.rename(path + ".new", path)


def read(path: str, most: int) -> "bytes | None":
    """Return the first bytes of a file that `replace` wrote, None where there is none."""
    for name in (path, path + ".new"):  # the second where the power failed between the two steps
        try:
            with open(name, "rb") as file:
                content: bytes = file.read(most)
                return content
        except OSError:
            pass
    return None

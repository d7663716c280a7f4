"""What is kept between two starts: the theme, and which events were seen on which gateway."""

import json
import os
from pathlib import Path

MOST_GATEWAYS = 50
"""gateways of which it is kept what was seen; the first goes"""
MOST_BYTES = 64 * 1024


def default_file() -> Path:
    """Return where it is kept: `$XDG_STATE_HOME/tidegate/tui.json`."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "tidegate" / "tui.json"


class Preferences:
    """Reads the file once; each change is written. A file that cannot be used stays unchanged."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self.theme = ""
        self.seen: dict[str, int] = {}
        """the last event that was seen, by gateway"""
        self._read()

    def save(self) -> None:
        """Write the file; what cannot be written is not kept."""
        if self._file is None:
            return
        while len(self.seen) > MOST_GATEWAYS:
            del self.seen[next(iter(self.seen))]
        document = json.dumps({"theme": self.theme, "seen": self.seen}, ensure_ascii=False)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            written = self._file.with_suffix(".new")
            written.write_text(document, encoding="utf-8")
            written.replace(self._file)
        except OSError:
            self._file = None  # such as a home that cannot be written: nothing is kept

    def _read(self) -> None:
        if self._file is None:
            return
        try:
            with self._file.open(encoding="utf-8") as opened:
                document = json.loads(opened.read(MOST_BYTES))
        except (OSError, ValueError):
            return
        if not isinstance(document, dict):
            return
        self.theme = str(document.get("theme", ""))
        seen = document.get("seen")
        if isinstance(seen, dict):
            self.seen = {str(k): v for k, v in seen.items() if isinstance(v, int)}

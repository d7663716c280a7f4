"""A line that a person types in, with completion; without a terminal."""

from collections.abc import Sequence

MOST = 512
"""characters of a line"""
ENDS = {"enter": "done", "escape": "cancel", "ctrl+c": "cancel"}
"""keys after which the line is no longer there"""


class Editor:
    """A text with a cursor; `press` gives it a key and says what to do then."""

    def __init__(self, prompt: str, text: str = "", choices: Sequence[str] = ()) -> None:
        self.prompt = prompt
        self.text = text
        self.at = len(text)
        self.choices = choices
        self.note = ""
        """what is said beside the text"""
        self.hidden = False
        """whether the text is a password"""

    def press(self, key: str, character: str | None) -> str:
        """Take a key; return `done`, `cancel`, `changed` or nothing."""
        before, after = self.text[: self.at], self.text[self.at :]
        if key in ENDS:
            return ENDS[key]
        match key:
            case "tab":
                return self._complete()
            case "left" | "right":
                self.at = min(len(self.text), max(0, self.at + (1 if key == "right" else -1)))
            case "home" | "ctrl+a":
                self.at = 0
            case "end" | "ctrl+e":
                self.at = len(self.text)
            case "backspace" | "ctrl+h":
                return self._put(before[:-1], after) if self.text else "cancel"
            case "delete":
                return self._put(before, after[1:])
            case "ctrl+u":
                return self._put("", after)
            case "ctrl+w":
                return self._put(before.rstrip().rpartition(" ")[0], after)
            case _:
                return self.paste(character) if character and character.isprintable() else ""
        return ""

    def paste(self, text: str) -> str:
        """Put a text at the cursor."""
        clean = "".join(each for each in text if each.isprintable())
        before = (self.text[: self.at] + clean)[:MOST]
        return self._put(before, self.text[self.at :])

    def fitting(self) -> list[str]:
        """Return the choices that the text may become."""
        words = self.text.casefold()
        return [
            each
            for each in self.choices
            if each.casefold().startswith(words)
            or all(word in each.casefold() for word in words.split())
        ]

    def _complete(self) -> str:
        found = self.fitting()
        return self._put(found[0].partition("  ")[0], "") if found else ""

    def _put(self, before: str, after: str) -> str:
        self.text, self.at = (before + after)[:MOST], len(before)
        return "changed"

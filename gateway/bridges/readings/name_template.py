"""Names of nodes and instances that are made from a message's fields: `{model}-{id}`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.bridges.readings.reading import NAME_MAX, instance_name
from gateway.settings.declaration import check

FIELD = re.compile(r"\{([^{}]+)\}")
PLACE = re.compile(r"([-_ .:]?)\{([^{}]+)\}")
"""A field and the separator before it, which is left out with it."""

ADDRESS = re.compile("(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")

NAME = re.compile(r"[^/+#\x00-\x1f\x7f]+")
SEPARATORS = "-_ .:"


@dataclass(frozen=True, slots=True)
class NameTemplate:
    """A name with fields in braces; fields that a message lacks are left out."""

    text: str

    @property
    def fields(self) -> frozenset[str]:
        """The fields of the name: they describe the other fields and are no readings."""
        return frozenset(FIELD.findall(self.text))

    def fill(self, fields: Mapping[str, object]) -> str:
        """Return the name for a message; empty if the message has none of its fields."""
        if not self.fields:
            return self.text
        words = {name: _word(at(fields, name)) for name in self.fields}
        if not any(words.values()):
            return ""
        name = PLACE.sub(lambda place: words[place[2]] and place[1] + words[place[2]], self.text)
        return instance_name(without_colons(name.strip(SEPARATORS)))


def without_colons(name: str) -> str:
    """Return an address in the form that nodes have elsewhere, another name unchanged."""
    return name.replace(":", "").lower() if ADDRESS.fullmatch(name) else name


def at(fields: Mapping[str, object], path: str) -> object:
    """Return a field, or the one at a path of names with dots between them; None without one."""
    if path in fields:
        return fields[path]
    found: object = fields
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _word(value: object) -> str:
    """Return a value as part of a name."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ""
    return str(value).strip()


@check("text", type="string", minLength=1)
def name_template(value: object) -> str:
    """Accept a name such as `barn` or `{model}-{id}`."""
    allowed = f"1 to {NAME_MAX} bytes without /, + and #, such as barn or {{model}}-{{id}}"
    if not isinstance(value, str) or not 1 <= len(value.encode()) <= NAME_MAX:
        raise ValueError(allowed)
    if not NAME.fullmatch(value) or set(FIELD.sub("", value)) & {"{", "}"}:
        raise ValueError(allowed)
    return value

"""The JSON Schema of a configuration file, with which editors complete and check it."""

import json
import re
from typing import Any

from gateway.config.bridges import bridge_kinds, load_kind
from gateway.config.configuration import Configuration
from gateway.settings.declaration import Key, keys_of

LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def json_schema() -> dict[str, Any]:
    """Return the schema."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of Tidegate",
        **_with_bridges(_table(Configuration)),
        "definitions": {
            key.name: _table(key.table)
            for key in keys_of(Configuration)
            if key.single_table and key.table is not None
        },
    }


def _with_bridges(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the tables of the installed kinds of bridges."""
    for name, entry_point in bridge_kinds().items():
        items = _table(load_kind(entry_point).settings)
        schema["properties"][name] = {"type": "array", "items": items}
    return schema


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def _table(settings: type) -> dict[str, Any]:
    keys = list(keys_of(settings))
    needed = [key.name for key in keys if key.needed]
    return {
        "description": plain((settings.__doc__ or "").partition("\n")[0]),
        "type": "object",
        "properties": {key.name: _key(key) for key in keys},
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }


def _key(key: Key) -> dict[str, Any]:
    if key.single_table:
        table = {"$ref": f"#/definitions/{key.name}"}
        return {"oneOf": [table, _array(key, table)]}
    if key.table is not None:
        table = _table(key.table)
        return _array(key, table) if key.many else table
    default = "" if key.needed or key.default_shown == "-" else f" Default: {key.default_shown}."
    return {"description": plain(f"{key.meaning}.{default}"), **key.check.schema}


def _array(key: Key, table: dict[str, Any]) -> dict[str, Any]:
    least = {"minItems": 1} if key.needed else {}
    return {"type": "array", "items": table, **least, "maxItems": key.many}


def plain(markdown: str) -> str:
    """Return the text of a Markdown line, without the targets of its links."""
    return LINK.sub(r"\1", markdown)

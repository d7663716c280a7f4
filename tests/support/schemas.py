"""The schemas of what crosses a program's border, as they stand in docs/."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

DOCS = Path(__file__).parents[2] / "docs"


def read_schema(name: str) -> dict[str, Any]:
    """Return what `docs/<name>.schema.json` says, which is a schema itself."""
    schema: dict[str, Any] = json.loads((DOCS / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return schema


@cache  # to look at a schema takes longer than to check most values
def validator_of(name: str) -> Draft202012Validator:
    """Return what checks values against that schema."""
    return Draft202012Validator(read_schema(name))

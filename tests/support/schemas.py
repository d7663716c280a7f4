"""The schemas of what crosses a program's border, as they stand in docs/understand/schemas/."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

FOLDER = Path(__file__).parents[2] / "docs/understand/schemas"


def read_schema(name: str) -> dict[str, Any]:
    """Return what `docs/understand/schemas/<name>.schema.json` says, which is a schema itself."""
    schema: dict[str, Any] = json.loads(
        (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    )
    Draft202012Validator.check_schema(schema)
    return schema


@cache  # to look at a schema takes longer than to check most values
def validator_of(name: str) -> Draft202012Validator:
    """Return what checks values against that schema."""
    return Draft202012Validator(read_schema(name))

"""Writes the keys of docs/use/configuration.md and the JSON Schema from the declarations."""

from pathlib import Path

from gateway.config.json_schema import schema_text
from gateway.config.reference import with_reference

PAGE = Path("docs/use/configuration.md")
SCHEMA = Path("examples/gateway.schema.json")

PAGE.write_text(with_reference(PAGE.read_text("utf-8")), encoding="utf-8")
SCHEMA.write_text(schema_text(), encoding="utf-8")

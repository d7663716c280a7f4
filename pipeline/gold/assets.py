"""What people call gateways and nodes, where they are, and by which clock their days begin."""

import tomllib
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.tables import delta
from pipeline.tables.columns import Columns, arrow_schema

ASSETS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("name", "string"),
    ("place", "string"),
    ("time_zone", "string"),
)
"""`node` is null for the gateway itself, `time_zone` for a node."""
ASSETS_SCHEMA = arrow_schema(ASSETS)
_KEYS = {"gateway": ("name", "place", "time_zone", "node"), "node": ("name", "place")}


def read_assets(file: Path) -> pa.Table:
    """Return ASSETS as a TOML file has them; raises PipelineError with file and key."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is not TOML: {error}") from None
    rows = []
    for gateway, values in _tables(content, ("gateway",), file, "").get("gateway", {}).items():
        where = f"gateway.{gateway}"
        told = _tables(values, _KEYS["gateway"], file, where)
        rows.append({"gateway_id": gateway} | _texts(told, file, where))
        for node, of_node in told.get("node", {}).items():
            place = f"{where}.node.{node}"
            texts = _texts(_tables(of_node, _KEYS["node"], file, place), file, place)
            rows.append({"gateway_id": gateway, "node": node} | texts)
    return pa.Table.from_pylist(rows, schema=ASSETS_SCHEMA)


def moved(root: Path, assets: pa.Table | None) -> bool:
    """Say whether a day begins at another time than by the table `assets`."""
    if assets is None:
        return False
    table = root / "assets"
    before = delta.read_all(table) if delta.exists(table) else ASSETS_SCHEMA.empty_table()
    return zones(before) != zones(assets)


def update(root: Path, assets: pa.Table | None) -> None:
    """Bring the table `assets` up to these, if any."""
    table = root / "assets"
    if assets is None:
        return
    delta.create(table, ASSETS)
    before = delta.read_all(table)
    if not before.equals(assets.cast(before.schema)):
        delta.overwrite(table, assets)


def zones(assets: pa.Table) -> dict[str, str]:
    """Return the time zone of each gateway that has one."""
    return {
        row["gateway_id"]: row["time_zone"]
        for row in assets.to_pylist()
        if row["time_zone"] is not None
    }


def _tables(value: object, known: tuple[str, ...], file: Path, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PipelineError(f"{file}: {where} is {value!r}, but a table is needed")
    for key in value:
        if key not in known:
            name = f"{where}.{key}" if where else key
            raise PipelineError(f"{file}: {name} is not known; known are {', '.join(known)}")
    return value


def _texts(values: dict[str, Any], file: Path, where: str) -> dict[str, str]:
    found = {name: value for name, value in values.items() if name != "node"}
    for name, value in found.items():
        if not isinstance(value, str):
            raise PipelineError(f"{file}: {where}.{name} is {value!r}, but a text is needed")
    if "time_zone" in found:
        try:
            ZoneInfo(found["time_zone"])
        except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
            zone = found["time_zone"]
            raise PipelineError(
                f"{file}: {where}.time_zone is {zone!r}, which is no zone such as Europe/Berlin"
            ) from None
    return found

"""What people call gateways and nodes, where they are, and by which clock their days begin."""

import tomllib
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.policy import Aliases
from pipeline.tables import delta
from pipeline.tables.columns import Columns, arrow_schema
from pipeline.tables.delta import Where

ASSETS: Columns = (
    ("gateway_id", "string"),
    ("node", "string"),
    ("name", "string"),
    ("place", "string"),
    ("time_zone", "string"),
    ("was", "array<string>"),
)
"""`node` is null for the gateway itself, `time_zone` for a node. `was` names what it took the place
of: gateways, or nodes of this gateway."""
ASSETS_SCHEMA = arrow_schema(ASSETS)
_KEYS = {
    "gateway": ("name", "place", "time_zone", "was", "node"),
    "node": ("name", "place", "was"),
}


def read_assets(file: Path) -> pa.Table:
    """Return ASSETS as a TOML file has them; raises PipelineError with file and key."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file} is not TOML: {error}") from None
    rows = []
    for gateway, values in _tables(content, ("gateway",), file, "").get("gateway", {}).items():
        where = f"gateway.{gateway}"
        table = _tables(values, _KEYS["gateway"], file, where)
        rows.append({"gateway_id": gateway} | _texts(table, file, where))
        for node, of_node in table.get("node", {}).items():
            place = f"{where}.node.{node}"
            texts = _texts(_tables(of_node, _KEYS["node"], file, place), file, place)
            rows.append({"gateway_id": gateway, "node": node} | texts)
    found = pa.Table.from_pylist(rows, schema=ASSETS_SCHEMA)
    _check_aliases(found, file)
    return found


def moved(root: Where, assets: pa.Table | None) -> bool:
    """Say whether gold differs from that by the table `assets`: by time zones or lists `was`."""
    if assets is None:
        return False
    table = root / "assets"
    before = delta.read_all(table) if delta.exists(table) else ASSETS_SCHEMA.empty_table()
    return zones(before) != zones(assets) or aliases(before) != aliases(assets)


def update(root: Where, assets: pa.Table | None) -> None:
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


def aliases(assets: pa.Table | None) -> Aliases:
    """Return the names that gateways and nodes had before."""
    gateways, nodes = {}, {}
    for row in assets.to_pylist() if assets is not None else ():
        for was in row.get("was") or ():
            if row["node"] is None:
                gateways[was] = row["gateway_id"]
            else:
                nodes[row["gateway_id"], was] = row["node"]
    return Aliases(gateways, nodes)


def _check_aliases(assets: pa.Table, file: Path) -> None:
    """Raise PipelineError for a name that two claim, or that goes on and is claimed itself."""
    claimed: set[tuple[str | None, str]] = set()
    for row in assets.to_pylist():
        for was in row["was"] or ():
            name = None if row["node"] is None else row["gateway_id"], was
            if name in claimed:
                raise PipelineError(f"{file}: {was!r} is in two lists `was`, but can go on in one")
            claimed.add(name)
    for row in assets.to_pylist():
        of = None if row["node"] is None else row["gateway_id"]
        if row["was"] and (of, row["node"] or row["gateway_id"]) in claimed:
            name = row["node"] or row["gateway_id"]
            raise PipelineError(f"{file}: {name!r} has a list `was` and is in one: name the last")


def _tables(value: object, known: tuple[str, ...], file: Path, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PipelineError(f"{file}: {where} is {value!r}, but a table is needed")
    for key in value:
        if key not in known:
            name = f"{where}.{key}" if where else key
            raise PipelineError(f"{file}: {name} is not known; known are {', '.join(known)}")
    return value


def _texts(values: dict[str, Any], file: Path, where: str) -> dict[str, Any]:
    found = {name: value for name, value in values.items() if name != "node"}
    for name, value in found.items():
        if name == "was":
            if not isinstance(value, list) or not all(isinstance(was, str) for was in value):
                wrong = f"{where}.was is {value!r}, but a list of texts is needed"
                raise PipelineError(f"{file}: {wrong}")
        elif not isinstance(value, str):
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

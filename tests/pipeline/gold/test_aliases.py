"""Gateways and nodes that took the place of others: gold has one series."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import PipelineError
from pipeline.gold.assets import aliases, read_assets
from pipeline.gold.tasks import renamed
from pipeline.policy import Aliases

ASSETS = """
[gateway.barn]
was = ["old-barn", "barn-2019"]

[gateway.barn.node.n1]
was = ["n7"]

[gateway.mill.node.n1]
name = "Silo"
"""
NOW = {
    ("old-barn", "n7"): ("barn", "n1"),
    ("barn", "n7"): ("barn", "n1"),
    ("barn-2019", "n2"): ("barn", "n2"),
    ("old-barn", None): ("barn", None),
    ("mill", "n7"): ("mill", "n7"),
    ("mill", "n1"): ("mill", "n1"),
}


def written(folder: Path, text: str) -> Path:
    file = folder / "assets.toml"
    file.write_text(text)
    return file


@given(st.lists(st.sampled_from(list(NOW))))
def test_rows_have_the_names_of_now(names: list[tuple[str, str | None]]) -> None:
    known = Aliases({"old-barn": "barn", "barn-2019": "barn"}, {("barn", "n7"): "n1"})
    columns = {
        "seq": pa.array(range(len(names)), pa.int64()),
        "gateway_id": pa.array([gateway for gateway, _ in names], pa.string()),
        "node": pa.array([node for _, node in names], pa.string()),
    }
    found = renamed(pa.table(columns), known)
    assert found.column_names == list(columns)
    got = zip(found["gateway_id"].to_pylist(), found["node"].to_pylist(), strict=True)
    assert list(got) == [NOW[name] for name in names]


def test_the_file_of_assets_names_them(tmp_path: Path) -> None:
    assets = read_assets(written(tmp_path, ASSETS))
    assert aliases(assets) == Aliases(
        {"old-barn": "barn", "barn-2019": "barn"}, {("barn", "n7"): "n1"}
    )
    assert aliases(None) == Aliases()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[gateway.a]\nwas = "b"', "gateway.a.was is 'b', but a list of texts is needed"),
        ("[gateway.a]\nwas = [1]", r"gateway.a.was is \[1\], but a list of texts is needed"),
        ('[gateway.a]\nwas = ["x"]\n[gateway.b]\nwas = ["x"]', "'x' is in two lists `was`"),
        (
            '[gateway.a]\nwas = ["b"]\n[gateway.b]\nwas = ["c"]',
            "'b' has a list `was` and is in one",
        ),
        ('[gateway.a.node.n]\nwas = ["n"]', "'n' has a list `was` and is in one"),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        read_assets(written(tmp_path, text))

"""The page of the tables names each table and column."""

import re
from pathlib import Path

from gateway.cli.docs import read_sections
from pipeline.gold.assets import ASSETS
from pipeline.gold.days import GATEWAY_DAY, NODE_DAY
from pipeline.gold.expected import UNEXPECTED
from pipeline.gold.freshness import FRESHNESS
from pipeline.gold.readings import READINGS
from pipeline.gold.silences import SILENCES
from pipeline.operation.maintain import TABLES
from pipeline.operation.runs import RUNS
from pipeline.tables import columns
from pipeline.tables.columns import Columns
from tests.support.table import table

PAGE = Path(__file__).parents[3] / "docs/use/pipeline-tables.md"
SECTIONS = {section.heading: section.text for section in read_sections(PAGE)}


@table(
    ("headings", "shown"),
    [
        (["Bronze"], (*columns.BRONZE, columns.BATCH)),
        (["Silver"], columns.SILVER),
        (["Quarantine"], columns.QUARANTINE[len(columns.BRONZE) :]),
        (["Gold"], (*GATEWAY_DAY, *NODE_DAY, *FRESHNESS)),
        (["Gold", "Readings over time"], READINGS),
        (["Silences", "Gold"], SILENCES),
        (["Names, places and local days"], ASSETS),
        (["Expectations", "Silver"], UNEXPECTED),
        (["State"], (*columns.BATCHES, *columns.FILES, *columns.ISLANDS)),
        (["State"], (*columns.QUARANTINED, *columns.FOLDERS)),
        (["Reports"], (*columns.GAPS, *columns.BOARDS, *RUNS, *columns.LEDGER, *columns.CLOCKS)),
    ],
)
def test_the_page_names_each_column(headings: list[str], shown: Columns) -> None:
    named = {name for heading in headings for name in re.findall(r"`(\w+)`", SECTIONS[heading])}
    assert {name for name, _ in shown} - named == set()


def test_the_page_names_each_table() -> None:
    named = re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert set(TABLES) - {*named} == set()

"""Lines of gateways in files of their own and of a collector."""

import io

from hypothesis import given
from hypothesis import strategies as st

from pipeline.landing.reports import Report, collected, reports
from tests.support.table import table

GATEWAYS = st.from_regex("[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True)
CONTENT = st.binary().map(lambda line: line.replace(b"\n", b" "))


@given(st.lists(st.tuples(GATEWAYS, CONTENT)))
def test_what_was_collected_is_read_as_it_came(given: list[tuple[str, bytes]]) -> None:
    file = io.BytesIO(b"".join(collected(*each) + b"\n" for each in given))
    found = reports(file, "20251121/ledger/collected.000000000000000001-a.jsonl")
    assert list(found) == [Report(name, n, line) for n, (name, line) in enumerate(given, 1)]


LINE = collected("mill", b"{}")


@table(
    ("name", "content", "found"),
    [
        ("barn/ledger/00a1b2c3d4.1.jsonl", LINE, ("barn", LINE)),
        ("barn/ledger/collected.1-a.jsonl", b'{"epoch":1}', ("barn", b'{"epoch":1}')),
        ("20251121/clock/collected.1-a.jsonl", LINE, ("mill", b"{}")),
        ("20251121/clock/collected.1-a.jsonl", LINE[:-2], ("20251121", LINE[:-2])),
    ],
)
def test_a_line_is_of_the_gateway_that_it_or_its_folder_names(
    name: str, content: bytes, found: tuple[str, bytes]
) -> None:
    (report,) = reports(io.BytesIO(b"\n" + content + b"\n"), name)
    assert report == Report(found[0], 2, found[1])

from gateway.counters import Counters
from gateway.storage.engine.writer import CommitFigures


def test_commits_are_counted_with_what_shared_them_and_how_long_they_took() -> None:
    counters = Counters()
    figures = CommitFigures(counters)
    for rows, seconds in ((1, 0.002), (10, 0.0085), (3, 0.001)):
        figures.count(rows, seconds)
    figures.show_means()
    shown = {
        name.removeprefix("tidegate/storage/"): value for name, value in counters.values.items()
    }
    assert shown == {
        "commits": 3,
        "rows": 14,
        "commit_rows_mean": 4.7,
        "commit_rows_most": 10,
        "commit_ms_mean": 3.83,
        "commit_ms_longest": 8.5,
    }

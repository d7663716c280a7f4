"""The sums of what gateways say of their numbers."""

import json
from pathlib import Path
from typing import Any

from pipeline.ledger.accounts import accounts, accounts_of
from pipeline.ledger.files import LedgerLine, ledger_files, read_ledger

OLD, NEW = "00a1b2c3d4", "ffffffffff"


def _put(landing: Path, name: str, *entries: dict[str, Any] | str, gateway: str = "barn") -> None:
    folder = landing / gateway / "ledger"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def _entry(
    *ranges: tuple[int, int, str, str], epoch: str = OLD, last: dict[str, int] | None = None
) -> dict[str, Any]:
    previous = None if last is None else {"epoch": OLD, "last": last}
    return {
        "epoch": epoch,
        "start": 1,
        "previous": previous,
        "stream": "main",
        "ranges": [list(each) for each in ranges],
    }


def test_a_complete_stream_and_one_that_lacks_numbers(tmp_path: Path) -> None:
    _put(
        tmp_path,
        f"{OLD}.1.jsonl",
        _entry((1, 90, "filtered", "0@4c1d20aa"), (91, 95, "delivered", "")),
        _entry((96, 99, "expired", ""), (100, 100, "lost", "a damaged database")),
    )
    _put(tmp_path, f"{NEW}.1.jsonl", _entry(epoch=NEW, last={"main": 120, "slow": 3}))
    _put(tmp_path, f"{NEW}.1.jsonl", _entry((1, 2, "delivered", ""), epoch=NEW), gateway="mill")
    assert [str(each) for each in accounts(tmp_path)] == [
        (
            "barn/00a1b2c3d4/main: delivered 5 + filtered 90 + expired 4 + lost 1 = last 120,"
            " missing 20"
        ),
        "barn/00a1b2c3d4/slow: 0 = last 3, missing 3",
        "mill/ffffffffff/main: delivered 2 = last 2, missing 0",
    ]


def test_a_restored_gateway_does_not_shorten_the_epoch_of_its_backup(tmp_path: Path) -> None:
    later = "eeeeeeeeee", "ffffffffff"
    for epoch, last in zip(later, (500, 200), strict=True):
        _put(tmp_path, f"{epoch}.1.jsonl", _entry(epoch=epoch, last={"main": last}))
    lines = read_ledger(tmp_path, ledger_files(tmp_path))
    reported = [each for each in lines if isinstance(each, LedgerLine)]
    for order in (reported, reported[::-1]):
        assert [each.ended for each in accounts_of(order)] == [500]


def test_the_next_start_says_with_which_number_an_epoch_has_ended(tmp_path: Path) -> None:
    _put(tmp_path, f"{OLD}.1.jsonl", _entry((1, 9, "filtered", "0@4c1d20aa")))
    landed = ("barn", OLD, "slow"), ("barn", NEW, "main")

    def ended() -> dict[str, int | None]:
        lines = read_ledger(tmp_path, ledger_files(tmp_path))
        reported = [each for each in lines if isinstance(each, LedgerLine)]
        return {"/".join(each.key[1:]): each.ended for each in accounts_of(reported, landed)}

    assert ended() == {f"{OLD}/main": None, f"{OLD}/slow": None, f"{NEW}/main": None}
    _put(tmp_path, f"{NEW}.1.jsonl", _entry(epoch=NEW, last={"main": 7}))
    assert ended() == {f"{OLD}/main": 7, f"{OLD}/slow": 0, f"{NEW}/main": None}
    _put(tmp_path, f"{NEW}.1.jsonl", _entry(epoch=NEW, last={}))
    assert ended() == {f"{OLD}/main": 0, f"{OLD}/slow": 0, f"{NEW}/main": None}


def test_a_number_that_is_told_of_twice_counts_once(tmp_path: Path) -> None:
    _put(
        tmp_path,
        f"{OLD}.1.jsonl",
        _entry((1, 5, "delivered", ""), (8, 9, "filtered", "0@a")),
        _entry((1, 5, "delivered", "")),
        _entry((1, 7, "delivered", ""), (9, 12, "filtered", "0@a*3 1@b*1")),
        _entry((20, 29, "evicted", "filtered*8 evicted*2")),
    )
    (account,) = accounts(tmp_path)
    assert account.outcomes == {"delivered": 7, "filtered": 13, "evicted": 2}
    assert (account.last, account.missing) == (29, 7)


def test_the_first_word_on_a_number_holds(tmp_path: Path) -> None:
    """First is what an earlier start wrote, a file of a lower number, or an earlier line."""
    _put(tmp_path, f"{OLD}.9.jsonl", _entry((5, 10, "delivered", "")))
    _put(tmp_path, f"{OLD}.10.jsonl", _entry((1, 20, "lost", "a damaged database")))
    _put(tmp_path, f"{NEW}.1.jsonl", _entry((3, 4, "expired", "")), gateway="mill")
    later = _entry((1, 4, "evicted", ""), epoch=NEW) | {"start": 2}
    _put(tmp_path, "0000000000.1.jsonl", later, gateway="mill")
    _put(tmp_path, f"{OLD}.1.jsonl", _entry(epoch="0000000000") | {"start": 3}, gateway="mill")
    _put(
        tmp_path,
        f"{NEW}.2.jsonl",
        _entry((3, 3, "lost", ""), epoch=NEW) | {"start": 2},
        gateway="mill",
    )
    assert [(each.key[0], dict(each.outcomes)) for each in accounts(tmp_path)] == [
        ("barn", {"delivered": 6, "lost": 14}),
        ("mill", {"expired": 2}),
        ("mill", {"lost": 1, "evicted": 3}),
    ]


def test_counts_that_contradict_their_range_are_mere_words(tmp_path: Path) -> None:
    causes = ["filtered*2000", "filtered*9 evicted*1 lost*5", "filtered*-1 evicted*11"]
    ranges = [(n * 10 + 1, n * 10 + 10, "evicted", cause) for n, cause in enumerate(causes)]
    _put(tmp_path, f"{OLD}.1.jsonl", _entry(*ranges, (26, 35, "lost", "filtered*8 lost*2")))
    (account,) = accounts(tmp_path)
    assert account.outcomes == {"evicted": 30, "lost": 5}
    assert (account.last, account.missing) == (35, 0)


def test_what_is_no_entry_is_passed_over(tmp_path: Path) -> None:
    assert accounts(tmp_path / "missing") == []
    _put(tmp_path, ".1.jsonl.tmp", _entry((1, 1, "delivered", "")))
    wrong: list[dict[str, Any] | str] = [
        "{",
        "[]",
        "[" * 100_000,
        "9" * 5_000,
        _entry() | {"start": 0},
        _entry() | {"stream": "a b"},
        _entry((1, 2**63, "delivered", "")),
        _entry((1, 2, "vanished", "")),
        {"epoch": OLD, "stream": "main", "ranges": [[1, 9, "lost", ""]]},
        '{"epoch": 1}',
        _entry() | {"epoch": None},
        _entry() | {"ranges": None},
        _entry() | {"ranges": [[1, 2, "delivered"]]},
        _entry() | {"ranges": [[3, 2, "delivered", ""]]},
        _entry() | {"ranges": [[True, 2, "delivered", ""]]},
        _entry() | {"previous": {}},
        _entry() | {"previous": {"epoch": OLD, "last": {"main": "9"}}},
    ]
    (tmp_path / "barn" / "ledger" / "x.jsonl").mkdir()
    _put(tmp_path, f"{OLD}.1.jsonl", *wrong, _entry((1, 1, "delivered", "")))
    (account,) = accounts(tmp_path)
    assert account.outcomes == {"delivered": 1}

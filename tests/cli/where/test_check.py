import io
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.cli.where import check
from gateway.where.compile import compile_where
from tests.support.where.vectors import VECTORS

FIRST = {"topic": "s/1", "qos": 0, "retain": False, "payload": '{"t": 20}'}


@pytest.fixture
def message(tmp_path: Path) -> Path:
    return written(tmp_path, FIRST | {"user_properties": [["site", "A"]]})


def written(folder: Path, row: object) -> Path:
    file = folder / "message.json"
    file.write_text(json.dumps(row), "utf-8")
    return file


def vectors(folder: Path, *rows: object) -> Path:
    file = folder / "vectors.jsonl"
    file.write_text("\n\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "count"), [("where-vectors.jsonl", 653), ("where-vectors-uplink.jsonl", 23)]
)
@pytest.mark.uncovered
def test_the_published_vectors(name: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "vectors", str(VECTORS / name)]) == 0
    assert capsys.readouterr().out == f"where: {count} passed, 0 failed\n"


FAILURES: list[tuple[dict[str, Any], str]] = [
    ({"expr": "qos = 0", "result": False}, "expected false, got true"),
    ({"expr": "qos = 0", "result": 1}, "expected 1, got true"),
    ({"expr": "qos = ", "result": None}, 'expected null, got {"kind": "syntax", "position": 6}'),
    (
        {"expr": "a = 1", "error": {"position": 1, "kind": "limit"}},
        'expected {"kind": "limit", "position": 1}, got "accepted"',
    ),
    (
        {"expr": "a = ", "error": {"position": 4, "kind": "limit"}},
        'expected {"kind": "limit", "position": 4}, got {"kind": "syntax", "position": 4}',
    ),
    (
        {"mode": "uplink", "expr": "CHANGED(t)", "messages": [FIRST] * 2, "results": [True, True]},
        "expected [true, true], got [true, false]",
    ),
    (
        {"mode": "uplink", "expr": "PREV(SENT(t))", "error": {"position": 5, "kind": "syntax"}},
        'expected {"kind": "syntax", "position": 5}, got {"kind": "syntax", "position": 0}',
    ),
    ({"mode": "sql", "expr": "TRUE", "result": True}, "unknown mode 'sql'"),
]


@pytest.mark.parametrize(("row", "output"), FAILURES)
def test_a_vector_that_fails(
    row: dict[str, Any], output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"id": "good", "expr": "where qos = 0", "message": FIRST, "result": True}
    file = vectors(tmp_path, good, {"id": "bad", "message": FIRST} | row, good)
    assert main(["where", "vectors", str(file)]) == 1
    assert capsys.readouterr().out == f"bad: {output}\nwhere: 2 passed, 1 failed\n"


@pytest.mark.parametrize("expression", ["where1 = 5", "Where where1 = 5", "where(where1 = 5)"])
def test_a_name_that_begins_like_where_stays_whole_within_not(
    expression: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = FIRST | {"user_properties": [["where1", "5"]]}
    file = vectors(tmp_path, {"expr": expression, "message": message, "result": True})
    assert main(["where", "vectors", str(file)]) == 0
    assert capsys.readouterr().out == "where: 1 passed, 0 failed\n"


def test_not_may_run_into_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deepest = "(" * 32 + "TRUE" + ")" * 32
    file = vectors(tmp_path, {"expr": deepest, "message": FIRST, "result": True})
    assert main(["where", "vectors", str(file)]) == 0
    assert capsys.readouterr().out == "where: 1 passed, 0 failed\n"


def test_a_negation_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    always = compile_where("TRUE")
    monkeypatch.setattr(check, "compile_where", lambda text: always)
    file = vectors(tmp_path, {"id": "bad", "expr": "qos = 0", "message": FIRST, "result": True})
    assert main(["where", "vectors", str(file)]) == 1
    output = "bad: within NOT: expected false, got true\n"
    assert capsys.readouterr().out == output + "where: 0 passed, 1 failed\n"


def test_an_uplink_row_with_one_result(tmp_path: Path) -> None:
    row = {"mode": "uplink", "expr": "CHANGED(t)", "message": FIRST, "result": True}
    assert main(["where", "vectors", str(vectors(tmp_path, row))]) == 0


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: a vector is an object with a text `expr`"),
        ('{"expr": 1, "result": true}', "line 1: a vector is an object with a text `expr`"),
        ('{"expr": "TRUE"}', "line 1: a vector has one of `result`, `results` and `error`"),
        ('{"expr": "TRUE", "error": 5}', "line 1: `error` is an object"),
        ('{"id": "x", "expr": "TRUE", "result": true}', "x: 'message'"),
        ('{"id": "x", "expr": "TRUE", "message": {}, "result": true}', "x: topic is None"),
        ('{"expr": "TRUE", "mode": "uplink", "messages": 5, "results": []}', "line 1: 'int'"),
    ],
)
def test_what_is_no_vector(
    line: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vectors.jsonl"
    file.write_text(line, "utf-8")
    assert main(["where", "vectors", str(file)]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"tidegate: {file}: {output}")
    assert errors.count("\n") == 1


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "absent"
    assert main(["where", "vectors", str(file)]) == 2
    assert main(["where", "explain", "TRUE", "--message", str(file)]) == 2
    error = f"tidegate: {file}: No such file or directory\n"
    assert capsys.readouterr().err == error * 2
    file.write_bytes(b'{"expr": "\xff"}')
    assert main(["where", "vectors", str(file)]) == 2
    assert capsys.readouterr().err == f"tidegate: {file}: not UTF-8 at byte 10\n"


@pytest.mark.parametrize("arguments", [["a = 1"], ["--rule", "CHANGED(a)"], ["-a > 5"]])
def test_check_accepts(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "check", *arguments]) == 0
    assert capsys.readouterr() == ("ok\n", "")


def test_check_warns_of_what_is_never_true(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "check", "'important'"]) == 0
    assert capsys.readouterr() == ("ok\n", "warning: filter can never be true\n")


@pytest.mark.parametrize(
    ("text", "line", "caret"),
    [
        ("a >> 3", "a >> 3", 3),
        ("a = ", "a = ", 4),
        ("", "", 0),
        ("a = 1\n AND )\nOR b", " AND )", 5),
        ("a\t> AND", "a > AND", 4),
        ("温度 > AND", "温度 > AND", 7),
        ("e\u0301 > AND", "e\u0301 > AND", 4),
        (
            "a = 1 AND " * 10 + ")" + " " * 40,
            "..." + ("a = 1 AND " * 6) + ")" + " " * 29 + "...",
            63,
        ),
        ("CHANGED(a)", "CHANGED(a)", 0),
    ],
)
def test_check_shows_the_position(
    text: str, line: str, caret: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["where", "check", text]) == 1
    output, errors = capsys.readouterr()
    shown, pointer, message = errors.rstrip("\n").split("\n")
    assert (output, shown, pointer) == ("", line, " " * caret + "^")
    assert message.startswith("syntax error at position ")


def test_an_expression_that_is_not_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["where", "check", "a = '\udcff'"])
    assert capsys.readouterr().err.endswith("argument EXPR: the expression is not UTF-8\n")


def test_explain(message: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expression = "payload.t > 30 AND $user.site = 'A' OR nope"
    assert main(["where", "explain", expression, "--message", str(message)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "NULL  <-  payload.t > 30 AND $user.site = 'A' OR nope",
        "  FALSE  <-  payload.t > 30 AND $user.site = 'A'",
        "    FALSE  <-  payload.t > 30",
        "      20  <-  payload.t",
        "      30",
        "    TRUE  <-  $user.site = 'A'",
        "      'A'  <-  $user.site",
        "      'A'",
        "  NULL  <-  nope",
        "result: NULL, the message does not pass",
    ]


def test_explain_what_remembers(message: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "explain", "CHANGED(t)", "--message", str(message)]) == 0
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert verdict == "result: TRUE, the message passes as the first one on its topic"


def test_explain_keeps_lines_short(message: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expression = "'" + "x" * 300 + "\n' = topic"
    assert main(["where", "explain", expression, "--message", str(message)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 2 * 100 + 10


def test_explain_an_expression_in_error(message: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["where", "explain", "a = ", "--message", str(message)]) == 1
    assert "    ^\n" in capsys.readouterr().err


def test_explain_a_message_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"topic": "t", "payload_b64": "/w==", "correlation_data": "x", "clientid": None}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(row)))
    expression = "payload IS NULL AND $payload_size = 1 AND correlation_data = 'x' AND qos = 0"
    assert main(["where", "explain", expression, "--message", "-"]) == 0
    assert capsys.readouterr().out.endswith("result: TRUE, the message passes\n")


@pytest.mark.parametrize(
    ("row", "output"),
    [
        ([], "a message is an object"),
        ({"topic": "t", "Qos": 1}, "unknown key 'Qos'; there are topic, qos,"),
        ({"qos": 1}, "topic is None, must be a text"),
        ({"topic": "t", "qos": 3}, "qos is 3, must be 0, 1 or 2"),
        ({"topic": "t", "qos": True}, "qos is True, must be 0, 1 or 2"),
        ({"topic": "t", "retain": 1}, "retain is 1, must be true or false"),
        ({"topic": "t", "payload": {}}, "payload is {}, must be a text"),
        ({"topic": "t", "received_at": "now"}, "received_at is 'now', must be a whole number"),
        ({"topic": "t", "payload_b64": "%"}, "payload_b64: "),
        ({"topic": "t", "user_properties": [["a"]]}, "user_properties is [['a']], must be a list"),
        ({"topic": "t", "user_properties": 5}, "user_properties is 5, must be a list"),
        ({"topic": "t", "user_properties": [["a", 1]]}, "user_properties is [['a', 1]]"),
    ],
)
def test_what_is_no_message(
    row: object, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, row)
    assert main(["where", "explain", "TRUE", "--message", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"tidegate: {file}: {output}")

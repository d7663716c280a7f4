from gateway.where.language.lexer import TokenKind, ascii_lower, ascii_upper, tokenize
from tests.support.table import table

KEYWORD, NAME, QUOTED_NAME = TokenKind.KEYWORD, TokenKind.NAME, TokenKind.QUOTED_NAME
SYSTEM_NAME, STRING, NUMBER = TokenKind.SYSTEM_NAME, TokenKind.STRING, TokenKind.NUMBER
OPERATOR, END, ERROR = TokenKind.OPERATOR, TokenKind.END, TokenKind.ERROR


@table(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\r\n ", []),
        ("aNd x AND_", [(KEYWORD, "AND"), (NAME, "x"), (NAME, "AND_")]),
        (
            "_x1 温度 Été e\u0301 a\u0663",
            [(NAME, n) for n in ("_x1", "温度", "Été", "e\u0301", "a\u0663")],
        ),
        ("x-y", [(NAME, "x"), (OPERATOR, "-"), (NAME, "y")]),
        ("$QoS $温度", [(SYSTEM_NAME, "QoS"), (SYSTEM_NAME, "温度")]),
        ('"a""b" `c``d` "AND"', [(QUOTED_NAME, 'a"b'), (QUOTED_NAME, "c`d"), (QUOTED_NAME, "AND")]),
        ("'it''s' '' ''''", [(STRING, "it's"), (STRING, ""), (STRING, "'")]),
        ("'\n\\'", [(STRING, "\n\\")]),
        (
            "1 1. 1.5 .5 1e5 1.e-5 .5E+5",
            [(NUMBER, n) for n in ("1", "1.", "1.5", ".5", "1e5", "1.e-5", ".5E+5")],
        ),
        ("1..2", [(NUMBER, "1."), (NUMBER, ".2")]),
        ("1e 1e+", [(NUMBER, "1"), (NAME, "e"), (NUMBER, "1"), (NAME, "e"), (OPERATOR, "+")]),
        ("5x", [(NUMBER, "5"), (NAME, "x")]),
        ("<>!=<=>=", [(OPERATOR, o) for o in ("!=", "!=", "<=", ">=")]),
        ("=<>+*/%(),.[]-", [(OPERATOR, o) for o in ("=", "!=", *"+*/%(),.[]-")]),
        ("- -", [(OPERATOR, "-"), (OPERATOR, "-")]),
        ("a.5", [(NAME, "a"), (NUMBER, ".5")]),
        ("\u017fOR \u212a", [(NAME, "\u017fOR"), (NAME, "\u212a")]),
    ],
)
def test_tokens(text: str, tokens: list[tuple[TokenKind, str]]) -> None:
    *read, last = tokenize(text)
    assert [(token.kind, token.value) for token in read] == tokens
    assert (last.kind, last.position) == (END, len(text))


@table(
    ("text", "position"),
    [
        ("a\u00a0= 1", 1),
        ("a \u3000", 2),
        ("3--2", 1),
        ("a /* b */", 2),
        ("a # b", 2),
        ("a ! b", 2),
        ("'abc", 0),
        ("x = 'abc''", 4),
        ('x = "abc', 4),
        ("x = `abc``", 4),
        ('x = ""', 4),
        ("$", 0),
        ("a $ b", 2),
        ('$"a"', 0),
        ("$1", 0),
        ("a\0", 1),
        ("\u0301a", 0),
        ("\u0663", 0),
        ("x\u2028", 1),
        ("\ud800", 0),
    ],
)
def test_an_error_is_the_last_token(text: str, position: int) -> None:
    *read, last = tokenize(text)
    assert ERROR not in {token.kind for token in read}
    assert last.kind is ERROR
    assert last.position == position
    assert last.error is not None
    assert (last.error.position, last.error.kind) == (position, "syntax")


def test_token_limit() -> None:
    assert len(tokenize("a " * 1024)) == 1025
    last = tokenize("a " * 1025)[-1]
    assert last.error is not None
    assert (last.error.position, last.error.kind) == (2048, "limit")


def test_what_cannot_be_read_is_no_token_that_the_limit_counts() -> None:
    last = tokenize("a " * 1024 + ";")[-1]
    assert last.error is not None
    assert last.error.kind == "syntax"


def test_shown() -> None:
    end = tokenize("")[0]
    assert end.shown() == "the end of the expression"
    assert tokenize("x" * 40)[0].shown() == repr("x" * 40)
    assert tokenize("x" * 41)[0].shown() == repr("x" * 40) + "..."


def test_case_of_ascii_only() -> None:
    assert (ascii_upper("aß"), ascii_upper("az")) == ("aß", "AZ")
    assert (ascii_lower("\u212a"), ascii_lower("AZ")) == ("\u212a", "az")

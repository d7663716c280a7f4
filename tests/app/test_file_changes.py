from gateway.access.acl_file import AclRules, parse
from gateway.app import file_changes
from gateway.app.file_changes import NAMED, changed_rules, changed_users
from gateway.pieces import LINES, complete
from gateway.server.passwords.file import PasswordFile
from gateway.server.passwords.hashing import Password
from tests.support.table import table

TWO = "user anna\ntopic read a\nuser ben\ntopic write b\n"

RULES = [
    ("", "", ""),
    (TWO, TWO, ""),
    (TWO, f"\n\n{TWO}", ""),
    (TWO, "user ben\ntopic write b\nuser anna\ntopic read a\n", ""),
    ("", "topic read a\n", "1 rules came, 0 went: without a user name +1 -0"),
    (TWO, "user ben\ntopic b\n", "1 rules came, 2 went: user 'anna' +0 -1, user 'ben' +1 -1"),
    ("pattern read a\n", "", "0 rules came, 1 went: everybody +0 -1"),
    ("", f"user {'x' * 50}\ntopic a\n", f"1 rules came, 0 went: user '{'x' * 40}' +1 -0"),
]


@table("old, new, said", RULES)
def test_changed_rules(old: str, new: str, said: str) -> None:
    assert complete(changed_rules(parse(old), parse(new))) == said


def test_files_that_come_and_go() -> None:
    assert complete(changed_rules(None, None)) == ""
    assert complete(changed_rules(None, parse(TWO))).startswith("2 rules came")
    assert complete(changed_rules(parse(TWO), None)).startswith("0 rules came, 2 went")


def test_a_line_is_bounded_and_made_in_pieces() -> None:
    rules = parse("".join(f"user {each:04}\ntopic a\n" for each in range(3 * LINES)))
    pieces = changed_rules(AclRules(), rules)
    assert sum(1 for _ in pieces) == 3
    line = complete(changed_rules(AclRules(), rules))
    assert line.endswith(f" and {3 * LINES - NAMED} more")
    assert len(line) < 100 + NAMED * (file_changes.SHOWN + 20)


def test_changed_users() -> None:
    one, other = Password("7", 1, b"a", b"x"), Password("7", 1, b"b", b"x")
    old = PasswordFile({"anna": one, "ben": one, "cleo": one})
    assert changed_users(old, old) == ""
    new = PasswordFile({"anna": one, "ben": other, "dora": one})
    assert changed_users(old, new) == (
        "1 users came: 'dora', 1 users went: 'cleo', 1 users have another password: 'ben'"
    )

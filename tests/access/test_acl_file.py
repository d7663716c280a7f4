import pytest

from gateway.access import acl_file
from gateway.access.acl_file import AclError, parse
from gateway.access.rule import READ, WRITE

FILE = """\
# comments and empty lines say nothing

topic read $SYS/#
  topic   write   a b/+\t
user anna
topic own/#
topic deny own/secret
pattern readwrite dev/%c/%u/#
user bob smith
topic read x
user anna
topic read again\r
"""


def test_rules_are_found_with_their_users() -> None:
    rules = parse(FILE)
    users = {
        user: [(rule.topic_filter, rule.grants) for rule in found]
        for user, found in rules.users.items()
    }
    assert users == {
        None: [("$SYS/#", READ), ("a b/+", WRITE)],
        "anna": [("own/#", READ | WRITE), ("own/secret", 0), ("again", READ)],
        "bob smith": [("x", READ)],
    }
    (pattern,) = rules.patterns
    assert (pattern.topic_filter, pattern.grants) == ("dev/%c/%u/#", READ | WRITE)
    assert pattern.origin == "line 8: pattern readwrite dev/%c/%u/#"


def test_blanks_that_only_unicode_knows_belong_to_a_name() -> None:
    for blank in ("\xa0", "\x85", "\u2028", "\x1c"):
        rules = parse(f"user anna{blank}\ntopic read {blank}a\npattern b{blank}\n")
        assert list(rules.users) == [f"anna{blank}"]
        assert rules.users[f"anna{blank}"][0].topic_filter == f"{blank}a"
        assert rules.patterns[0].topic_filter == f"b{blank}"
        with pytest.raises(AclError):
            parse(f"{blank}topic a\n")
    for blank in " \t\r\v\f":
        assert list(parse(f"user {blank}anna{blank}\ntopic a\n").users) == ["anna"]


WRONG = [
    ("topic", "topic", "is empty"),
    ("user", "user", "user NAME"),
    ("usr anna", "usr", "user NAME, topic ["),
    ("topic rread a", "rread", "read, write, readwrite, deny"),
    ("topic a b", "a", "read, write, readwrite, deny"),
    ("topic read a/#/b", "a/#/b", "has a # that is not its whole last level"),
    ("pattern read a+/%c", "a+/%c", "has a + that is not a whole level"),
    ("topic read $share/g/a", "$share/g/a", "not about shared subscriptions"),
    ("topic read a\0b", "a\0b", "holds U+0000"),
]


def test_what_is_wrong_is_named_with_its_line() -> None:
    for line, value, allowed in WRONG:
        with pytest.raises(AclError) as raised:
            parse(f"user x\n\n{line}\n")
        error = raised.value
        assert (error.number, error.value) == (3, "" if line == "topic" else value), line
        assert allowed in error.allowed
        assert str(error).startswith("line 3: ")


def test_a_file_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_file, "MAXIMUM_OF_ONE", 2)
    parse("topic a\ntopic b\npattern a\npattern b\nuser x\ntopic a\n")
    with pytest.raises(AclError, match=r"line 3: .*at most 2 rules of one user"):
        parse("topic a\ntopic b\ntopic c\n")
    monkeypatch.setattr(acl_file, "MAXIMUM_RULES", 2)
    with pytest.raises(AclError, match=r"line 4: .*at most 2"):
        parse("user a\nuser b\n#\nuser c\n")

"""Access rules as Mosquitto's manual describes them, read line by line for each question."""

from dataclasses import dataclass
from random import Random

from tests.support.naive.matcher import matches

LEVELS = ("a", "b", "anna", "c1", "$x", "", "a b", "\xa0")
FILTER_LEVELS = (*LEVELS, "+", "%c", "%u", "x%u")
USERS = (None, "anna", "anna\xa0", "b b", "b+", "%c")
CLIENTS = ("c1", "a", "c#", "c+2", "%u", "a/b")
BLANKS = " \t\n\v\f\r"


@dataclass(frozen=True)
class Who:
    username: str | None
    client_id: str


def allows(acl: str, who: Who, topic: str, wanted: str) -> bool:
    """Say whether a client may `read` or `write` a topic."""
    own, patterns, user = [], [], None
    for line in acl.split("\n"):
        kind, _, rest = line.strip(BLANKS).partition(" ")
        rest = rest.strip(BLANKS)
        if kind == "user":
            user = rest
        elif kind == "topic" and user == who.username:
            own.append(rest)
        elif kind == "pattern":
            patterns.append(rest)
    verdict = _verdict(own, topic, wanted)
    names = who.client_id + (who.username or "")
    if verdict is None and not set(names) & set("+#"):
        usable = [each for each in patterns if "%u" not in each or who.username is not None]
        verdict = _verdict([_named(each, who) for each in usable], topic, wanted)
    return verdict is True


def _verdict(rules: list[str], topic: str, wanted: str) -> bool | None:
    granted = None
    for rule in rules:
        word, _, topic_filter = rule.partition(" ")
        if matches(topic_filter.strip(BLANKS), topic):
            if word == "deny":
                return False
            if word in (wanted, "readwrite"):
                granted = True
    return granted


def _named(rule: str, who: Who) -> str:
    pieces = rule.split("%")
    out = pieces[0]
    for piece in pieces[1:]:
        if piece.startswith("c"):
            out += who.client_id + piece[1:]
        elif piece.startswith("u"):
            out += (who.username or "") + piece[1:]
        else:
            out += "%" + piece
    return out


def random_acl(random: Random) -> str:
    """Return the text of a file with up to a dozen rules, all of them valid, and many blanks."""
    lines = []
    for _ in range(random.randint(0, 12)):
        kind = random.choice(("user", "topic", "topic", "topic", "pattern", "pattern"))
        if kind == "user":
            words = ["user", random.choice(USERS[1:]) or ""]
        else:
            word = random.choice(("read", "write", "readwrite", "deny"))
            words = [kind, word, _random_filter(random, literal=kind == "topic")]
        line = random.choice((" ", "  ")).join(words)
        lines.append(random.choice(("", " ")) + line + random.choice(("", "\t", "\r", " \r", "\f")))
    return "".join(f"{line}\n" for line in lines)


def _random_filter(random: Random, *, literal: bool) -> str:
    levels = LEVELS if literal and random.random() < 0.5 else FILTER_LEVELS
    chosen = random.choices(levels, k=random.randint(1, 3))
    if random.random() < 0.3:
        chosen[-1] = "#"
    return "/".join(chosen) if chosen != [""] else "a"


def random_topic(random: Random) -> str:
    """Return a topic name that rules of `random_acl` may match."""
    levels = (*LEVELS, "c1", "%c", "b+", "xanna")
    chosen = [level for level in random.choices(levels, k=random.randint(1, 3)) if "+" not in level]
    return "/".join(chosen) or "a"

"""The access rules of a file in the syntax of Mosquitto's `acl_file`."""

from collections.abc import Iterator

from gateway.access.rule import NAMES, WORDS, Rule
from gateway.mqtt.errors import MqttError
from gateway.mqtt.topics import SHARED_PREFIX, check_topic_filter
from gateway.pieces import BLANKS, LINES, Pieces, complete, is_on_purpose

MAXIMUM_RULES = 100_000
"""Lines of one file that are not empty, some 300 bytes each."""

MAXIMUM_OF_ONE = 1_000
"""Rules of one user, and patterns: each of them is checked for every new topic."""

PURPOSE = 4_096
"""Characters at the beginning of a file that may declare it empty on purpose."""

ALLOWED = "user NAME, topic [read|write|readwrite|deny] FILTER, or pattern [...] FILTER"


class AclError(Exception):
    """An invalid line: its number from 1, its text, and what is allowed."""

    def __init__(self, number: int, value: str, allowed: str) -> None:
        super().__init__(f"line {number}: {value!r}: {allowed}")
        self.number = number
        self.value = value
        self.allowed = allowed


class AclRules:
    """The rules of a file: those of each user, None for clients without one, and patterns.

    A file without any is `empty_on_purpose` if a comment declares that.
    """

    def __init__(self) -> None:
        self.users: dict[str | None, list[Rule]] = {}
        self.patterns: list[Rule] = []
        self.empty_on_purpose = False

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.patterns) or any(self.users.values())


def parse(text: str) -> AclRules:
    """Read the rules at once; raise AclError at the first invalid line."""
    return complete(in_pieces(text))


def in_pieces(text: str) -> Pieces[AclRules]:
    """Read the rules; raise AclError at the first invalid line.

    As in Mosquitto, rules before the first `user` are for clients without a user name, and patterns
    are for everybody, wherever they are.
    """
    rules = AclRules()
    rules.empty_on_purpose = any(is_on_purpose(line) for line in text[:PURPOSE].split("\n"))
    user: str | None = None
    for count, (number, kind, rest) in enumerate(_lines(text), start=1):
        if count > MAXIMUM_RULES:
            raise AclError(number, kind, f"at most {MAXIMUM_RULES} such lines")
        if kind == "user":
            user = _user(number, rest)
        elif kind == "topic":
            _add(rules.users.setdefault(user, []), number, kind, rest)
        elif kind == "pattern":
            _add(rules.patterns, number, kind, rest)
        else:
            raise AclError(number, kind, ALLOWED)
        if count % LINES == 0:
            yield
    return rules


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, first word and the rest of each non-empty line."""
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip(BLANKS)
        if stripped and not stripped.startswith("#"):
            kind, _, rest = stripped.partition(" ")
            yield number, kind, rest.strip(BLANKS)


def _user(number: int, name: str) -> str:
    if not name:
        raise AclError(number, "user", "user NAME")
    return name


def _add(rules: list[Rule], number: int, kind: str, rest: str) -> None:
    if len(rules) >= MAXIMUM_OF_ONE:
        raise AclError(number, rest, f"at most {MAXIMUM_OF_ONE} rules of one user, and patterns")
    word, _, topic_filter = rest.partition(" ")
    if not topic_filter:
        word, topic_filter = "readwrite", rest
    if word not in WORDS:
        raise AclError(number, word, ", ".join(WORDS))
    topic_filter = topic_filter.strip(BLANKS)
    fault = filter_fault(topic_filter)
    if fault:
        raise AclError(number, topic_filter, fault)
    origin = f"line {number}: {kind} {word} {topic_filter}"
    rules.append(Rule(topic_filter, WORDS[word], origin, kind == "pattern"))


def filter_fault(topic_filter: str) -> str:
    """Return the fault of a rule's topic filter, "" if it is valid."""
    if topic_filter.startswith(SHARED_PREFIX):
        return "a rule is about topics, not about shared subscriptions"
    try:
        check_topic_filter(NAMES.sub("x", topic_filter))
    except MqttError as error:
        return error.reason
    return ""

"""Lines that are parsed by a regular expression, in linear time."""

from gateway.bridges.readings.event_time import named_time
from gateway.bridges.readings.written import text_of
from gateway.bridges.serial.sample import NoReadingError, Parse, Sample, measured
from gateway.bridges.supervision.interfaces import BridgeError
from gateway.extras import how_to_install

GROUPS_MAX = 64
MEMORY_MAX = 1 << 20
"""Memory of a compiled expression, bytes."""


def check_pattern(pattern: str) -> None:
    """Raise ValueError if the expression cannot be used; without re2 it is not checked."""
    try:
        compile_pattern(pattern)
    except BridgeError:
        return


def compile_pattern(pattern: str, decimal: str = ".") -> Parse:
    """Return a parser with named groups; `node`, `instance` and `time` have their meaning.

    RE2 does not backtrack, so no line takes long. Raises ValueError for an invalid expression or
    one without named groups, BridgeError if re2 is not installed.
    """
    try:
        import re2
    except ImportError:
        raise BridgeError(f"needs re2, which is not installed: {how_to_install('regex')}") from None
    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0] if error.args else error
        raise ValueError(f"pattern: {text.decode() if isinstance(text, bytes) else text}") from None
    names = compiled.groupindex
    if not 1 <= len(names) <= GROUPS_MAX:
        raise ValueError(f"pattern: 1 to {GROUPS_MAX} named groups such as (?P<temperature>...)")

    def parse(line: bytes) -> Sample:
        match = compiled.search(_text(line))
        if match is None:
            raise NoReadingError("no match")
        groups = {name: text for name, text in match.groupdict().items() if text is not None}
        node, instance = groups.pop("node", None), groups.pop("instance", "")
        stripped = {name: text.strip() for name, text in groups.items()}
        fields, units = measured(stripped, decimal)
        return Sample(fields, node, named_time(fields), units=units, instance=instance)

    return parse


def _text(line: bytes) -> str:
    try:
        return text_of(line).strip()
    except ValueError:
        return line.decode("utf-8", "replace").strip()

"""The filter programs that the gateway has installed: kept in a file, asked before each sample."""

from binascii import crc32

from . import const, files

TYPE_CHECKING = False  # MicroPython has no typing module
if TYPE_CHECKING:
    from .filter import Filter, Value

_PROGRAMS_MAX = const(8)
"""Quantities with a program; a program for a further one is refused."""

_FILE_MAX = const(4 + _PROGRAMS_MAX * 230)
"""Bytes of the file; a longer one was not written here."""

_DONE = const(0)
_NOT_VERIFIED = const(4)
"""Status: the program is of another version, not whole, or not one of node-filter.md."""
_NOT_NEWER = const(5)
"""Status: another program of this or a later version is installed for the quantity."""
_NO_SPACE = const(6)
"""Status: too many quantities have a program, or the file could not be written."""

_HEAD_BYTES = const(9)  # version, guard and the length of the quantity's name


class Program:
    """What is installed for one quantity; ValueError where it does not verify."""

    def __init__(self, argument: bytes) -> None:
        end = _HEAD_BYTES + (argument[8] if len(argument) >= _HEAD_BYTES else 0)
        if end == _HEAD_BYTES or end > len(argument):
            raise ValueError("argument of %d bytes" % len(argument))
        self.argument = argument
        self.version = int.from_bytes(argument[:4], "little")
        self.quantity = argument[_HEAD_BYTES:end].decode()
        self._guard_ms = 1000 * int.from_bytes(argument[4:8], "little")
        self._guarded_at: int | None = None
        self.filter = _filter(argument[end:]) if end < len(argument) else None

    def passes(self, value: "Value", unit: "str | None", now: int) -> bool:
        """Say whether a reading is sent: it passes the filter, or the next raw one is due."""
        if self.filter is None:
            return True
        if self._guard_ms and (
            self._guarded_at is None or now - self._guarded_at >= self._guard_ms
        ):
            self._guarded_at = now
            self.filter.remember(value, now)
            return True
        return self.filter.passes(value, unit, now)


def _filter(program: bytes) -> "Filter":
    from .filter import Filter  # a node without a program does without its memory

    return Filter(program)


class Programs:
    """Installs programs and runs them; `suppressed` counts what they held back since the start.

    They are kept at `path`, for the node's next start; without one only until then. A file that is
    damaged is left aside (`damaged`): a node that knows no program sends everything.
    """

    def __init__(self, path: "str | None" = None) -> None:
        self.suppressed = 0
        self.damaged = False
        self._path = path
        self._programs: dict[str, Program] = {}
        if path is not None:
            self._load(path)

    @property
    def version(self) -> int:
        """The highest version of those that filter; 0 where none does."""
        return max([each.version for each in self._programs.values() if each.filter] or [0])

    def passes(self, quantity: str, value: "Value", unit: "str | None", now: int) -> bool:
        """Say whether a reading is sent; count it if not."""
        program = self._programs.get(quantity)
        if program is None or program.passes(value, unit, now):
            return True
        self.suppressed += 1
        return False

    def install(self, argument: bytes) -> int:
        """Verify a program, keep it and run it from now on; return the status.

        What is refused changes nothing: the program before it goes on.
        """
        try:
            program = Program(argument)
        except ValueError:
            return _NOT_VERIFIED
        present = self._programs.get(program.quantity)
        if present is None and len(self._programs) == _PROGRAMS_MAX:
            return _NO_SPACE
        if present is not None and program.version <= present.version:
            return _DONE if argument == present.argument else _NOT_NEWER
        wanted = dict(self._programs)
        wanted[program.quantity] = program
        try:
            self._save(wanted)
        except OSError:
            return _NO_SPACE
        self._programs = wanted
        return _DONE

    def _save(self, programs: "dict[str, Program]") -> None:
        if self._path is None:
            return
        arguments = [each.argument for each in programs.values()]
        records = b"".join([bytes([len(each)]) + each for each in arguments])
        files.replace(self._path, crc32(records).to_bytes(4, "little") + records)

    def _load(self, path: str) -> None:
        for name in (path, path + ".new"):  # the second where the power failed between the two
            try:
                with open(name, "rb") as file:
                    self._programs = _read(file.read(_FILE_MAX + 1))
            except OSError:
                continue
            except ValueError:
                self.damaged = True
                continue
            self.damaged = False
            break


def _read(data: bytes) -> "dict[str, Program]":
    if len(data) > _FILE_MAX or int.from_bytes(data[:4], "little") != crc32(data[4:]):
        raise ValueError("the file of programs is damaged")
    programs = {}
    position = 4
    while position < len(data):
        end = position + 1 + data[position]
        program = Program(data[position + 1 : end])
        programs[program.quantity] = program
        position = end
    return programs

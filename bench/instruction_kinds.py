"""What kinds of work are the instructions of one message in plain Python, and which is the floor?

    .venv/bin/python -m bench.instruction_kinds [STORY...] [--messages N]

One message at a time goes through the gateway of this tree, and through the least broker in Python
(`bench.minimal_broker`, with `epoll` alone and with asyncio), as in `bench.instructions --turns`.
Callgrind's figures are grouped by the source file of each C function, for which Python needs its
symbols.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from bench.instructions import (
    FEW,
    PAUSE,
    ROOT,
    STORIES,
    TURNS,
    Client,
    gateway,
    mosquitto,
    running,
)
from tests.support.ports import free_port

KINDS = {
    "steps of the interpreter": ("ceval.c", "ceval_gil.h", "specialize.c", "pycore_ceval.h"),
    "calls: frames and arguments": (
        *("frame.c", "pycore_frame.h", "call.c", "pycore_call.h", "getargs.c", "methodobject.c"),
        *("descrobject.c", "modsupport.c", "pystate.c", "pycore_pystate.h"),
    ),
    "memory": ("obmalloc.c", "gcmodule.c", "malloc.c", "object.h", "pycore_object.h"),
    "whole numbers and floats": ("longobject.c", "longobject.c.h", "floatobject.c", "abstract.c"),
    "attributes, types, dicts, tuples": (
        *("object.c", "typeobject.c", "dictobject.c", "dictobject.c.h", "tupleobject.c"),
        *("listobject.c", "structmember.c", "pyhash.c", "setobject.c"),
    ),
    "sockets, epoll, clocks, locks": (
        *("socketmodule.c", "selectmodule.c", "pytime.c", "timemodule.c", "cancellation.c"),
        *("pthread_mutex_lock.c", "pthread_mutex_unlock.c", "pthread_cond_signal.c"),
    ),
}
"""Groups by the C file of a function; all other files are `the rest`."""

KIND_OF = {file: kind for kind, files in KINDS.items() for file in files}


def run(program: str, story: str, messages: int) -> Counter[str]:
    """Run a program for so many messages; return its instructions by kind.

    Of a gateway without an uplink they are those of its turns, of all else those of the whole run.
    """
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, port, fleet = Path(name), free_port(), 0
        output = folder / "callgrind.out"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
        if story == "forwarded":
            fleet = free_port()
            (folder / "fleet").mkdir()
            stack.enter_context(running(*mosquitto(folder / "fleet", fleet, 0), fleet))
        if program == "gateway":
            tool += [] if fleet else TURNS[3:]
            command, environment = gateway(ROOT, folder, port, fleet)
        else:
            command = [
                sys.executable,
                "-m",
                "bench.minimal_broker",
                str(port),
                *program.split()[1:],
            ]
            environment = dict(os.environ, PYTHONPATH=str(ROOT))
        with running([*tool, *command], environment, port):
            STORIES[story](port, fleet, messages)
        return by_kind(output)


def by_kind(output: Path) -> Counter[str]:
    """Return the sums of a file of callgrind's."""
    command = ["callgrind_annotate", "--threshold=100", "--auto=no", str(output)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for count, file in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +(\S+?):", text, re.MULTILINE):
        found[KIND_OF.get(file.rpartition("/")[2], "the rest")] += int(count.replace(",", ""))
    return found


def a_message(program: str, story: str, many: int) -> Counter[str]:
    """Return what one message costs in a program, by kind."""
    few, all_of_them = (run(program, story, messages) for messages in (FEW, FEW + many))
    return Counter({kind: (all_of_them[kind] - few[kind]) // many for kind in all_of_them})


def main() -> None:
    """Print a table for each story."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("stories", nargs="*", metavar="STORY", help="local, away or forwarded")
    parser.add_argument("--messages", type=int, default=200)
    options = parser.parse_args()
    Client.pause = PAUSE
    for story in options.stories or ("local", "forwarded"):
        least = ["least", "least --asyncio"] if story == "local" else []
        found = {each: a_message(each, story, options.messages) for each in ["gateway", *least]}
        print(f"| {story} | {' | '.join(found)} |\n| --- {'| --: ' * len(found)}|")
        for kind in (*KINDS, "the rest"):
            print(f"| {kind} | {' | '.join(f'{each[kind]:,}' for each in found.values())} |")
        print(f"| all | {' | '.join(f'{each.total():,}' for each in found.values())} |", flush=True)


if __name__ == "__main__":
    main()

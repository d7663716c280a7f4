"""Starts the node's newest program, and the one before it where the newest does not prove itself.

`tidegate firmware flash` copies this file to the board as main.py. The node's files stand in one of
two folders, `a` and `b`, and the file `slot` says which one to start:

    a          start a
    a try b    start b, on trial
    a tried b  b was started and did not last: start a from now on

A program on trial has TRIAL_MS. Whoever installed it writes `b` within them, or the board resets.
The traceback of one that failed is in the file `fault`.

With a file `hold` nothing is started, once: the board waits in its REPL to be written to, without
the watchdog or the memory of a program, and resets HOLD_MS after the last call of `hold()`.
"""

import os
import sys
import time

import machine
import micropython

TRIAL_MS = 60000
HOLD_MS = 120000
RESTART_S = 5
"""Seconds from a fault to the next start; Ctrl-C within them leads to the REPL. The watchdog of a
program leaves no more than 8."""

FEED_MS = 2000
"""Milliseconds between two times that a hold feeds the watchdog of an interrupted program."""

CTRL_C = 3
NO_INTERRUPT = -1

STATE = "slot"
HOLD = "hold"
FAULT = "fault"
TIMER = machine.Timer(0 if sys.platform == "esp32" else -1)


def read_state() -> "list[str]":
    """Return the words of the state, none where nothing was installed yet."""
    for name in (STATE, STATE + ".new"):
        try:
            with open(name) as file:
                words: list[str] = file.read().split()
                return words
        except OSError:
            pass
    return []


def write_state(state: str) -> None:
    """Replace the state in one step; where the file system cannot, the new one is in reach."""
    with open(STATE + ".new", "w") as file:
        file.write(state)
    try:
        os.rename(STATE + ".new", STATE)
    except OSError:  # FAT does not replace a file
        os.remove(STATE)
        os.rename(STATE + ".new", STATE)


def choose() -> "tuple[str, bool]":
    """Return the folder to start, and whether it is on trial; a trial is noted as used up."""
    words = read_state()
    if len(words) == 3 and words[1] == "try":
        write_state(words[0] + " tried " + words[2])
        return words[2], True
    if len(words) == 3:
        write_state(words[0])
    return (words[0] if words else "a"), False


def held() -> bool:
    """Return whether to start nothing this time."""
    try:
        os.remove(HOLD)
    except OSError:
        return False
    return True


class Hold:
    """Resets the board HOLD_MS after its making; feeds the watchdog of a program meanwhile."""

    def __init__(self) -> None:
        # Nothing stops a watchdog once it runs; a board that waits from its start has none.
        running = getattr(sys.modules.get("main"), "WATCHDOG_MS", None)
        self._watchdog = None
        if running is not None and hasattr(machine, "WDT"):
            self._watchdog = machine.WDT(timeout=running)
        self._left = HOLD_MS // FEED_MS
        TIMER.init(mode=machine.Timer.PERIODIC, period=FEED_MS, callback=self._wait)

    def _wait(self, _timer: machine.Timer) -> None:
        self._left -= 1
        if self._left <= 0:
            machine.reset()
        if self._watchdog is not None:
            self._watchdog.feed()


def reset_in(milliseconds: int) -> None:
    """Reset the board then, unless the timer is stopped or set anew."""
    TIMER.init(mode=machine.Timer.ONE_SHOT, period=milliseconds, callback=lambda _: machine.reset())


def hold() -> None:
    """Begin the time of a hold anew."""
    Hold()


def run(folder: str, on_trial: bool) -> None:
    """Run the program in `folder`, whose files are found before all others; reset at a fault."""
    sys.path.insert(0, "/" + folder)
    if on_trial:
        reset_in(TRIAL_MS)
    try:
        import main

        main.main("/" + folder)
    except Exception as fault:
        sys.print_exception(fault)
        note(fault, on_trial)
        time.sleep(0 if on_trial else RESTART_S)
        machine.reset()


def note(fault: Exception, on_trial: bool) -> None:
    """Keep the traceback of a trial, else the first one, since each writing wears the flash."""
    if on_trial or FAULT not in os.listdir("/"):
        with open(FAULT, "w") as file:
            sys.print_exception(fault, file)


if __name__ == "__main__":
    try:
        if held():
            HELD = True  # who writes to the board looks for it
            hold()
            print("held")
        else:
            run(*choose())
    except KeyboardInterrupt:  # whoever pressed Ctrl-C may be gone, or may press it again
        micropython.kbd_intr(NO_INTERRUPT)
        hold()
        micropython.kbd_intr(CTRL_C)
        print("starts again after %d s; hold() begins that time anew" % (HOLD_MS // 1000))

"""Any bytes from a client, in pieces of any size: the same happens, and others are served."""

import logging
import sys

import atheris

with atheris.instrument_imports(include=["gateway"]):
    from tests.fuzz.conversation import Conversation, in_pieces


def one_input(data: bytes) -> None:
    """Send all bytes behind the first at once, then in pieces of as many bytes as it says."""
    if not data:
        return
    size, sent = data[0] or 1, data[1:]
    at_once = Conversation().send([sent])
    assert at_once.outcome == Conversation().send(in_pieces(sent, size)).outcome
    at_once.check_others()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()

"""Ends runs of the pipeline in this process where a kill would, at a call of a function."""

import importlib

import pytest


class Killed(BaseException):
    """Ends a run as a kill does: nothing is tidied up."""


def kill_at(patch: pytest.MonkeyPatch, place: str, call: int, *, after: bool) -> None:
    """Let the given call of a function end the run, before it acts or after it did."""
    module, name = place.rsplit(".", 1)
    function = getattr(importlib.import_module(module), name)
    calls = iter(range(1, 1_000))

    def killing(*arguments: object, **options: object) -> object:
        last = next(calls) == call
        if last and not after:
            raise Killed
        result = function(*arguments, **options)
        if last:
            raise Killed
        return result

    patch.setattr(place, killing)

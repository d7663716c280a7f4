"""Prints what bash needs to complete `tidegate`: its commands, their words and options.

It needs the package on the path: PYTHONPATH=. python packaging/completion.py
"""

import argparse
from collections.abc import Iterator

from gateway.cli.commands import parser_of_all

SCRIPT = """\
# bash completion for tidegate; made by packaging/completion.py
_tidegate() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" path="" each
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        [[ $each == -* ]] || path="${{path:+$path }}$each"
    done
    local words=""
    while :; do
        case "$path" in
{cases}
        esac
        [[ -n $words || -z $path ]] && break
        [[ $path == *" "* ]] && path="${{path% *}}" || path=""
    done
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    [[ ${{#COMPREPLY[@]}} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}}
complete -o filenames -F _tidegate tidegate
"""


def words(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the path of each command and what may follow it."""
    found = [option for action in parser._actions for option in action.option_strings]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += action.choices
            for name, each in action.choices.items():
                yield from words(each, f"{path} {name}".strip())
        elif action.choices and not action.option_strings:
            found += map(str, action.choices)
    yield path, found


def script() -> str:
    """Return the whole script."""
    cases = (
        f'            "{path}") words="{" ".join(found)}" ;;'
        for path, found in words(parser_of_all())
    )
    return SCRIPT.format(cases="\n".join(cases))


if __name__ == "__main__":
    print(script(), end="")

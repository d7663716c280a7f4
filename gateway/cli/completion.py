"""What bash, zsh and fish need to complete `tidegate`: its commands, their words and options."""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BASH = """\
# bash completion for tidegate; made by `tidegate completion bash`
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

ZSH = """\
#compdef tidegate
# zsh completion for tidegate; made by `tidegate completion zsh`
_tidegate() {{
    local each come=""
    local -a offered
    for each in "${{(@)words[2,CURRENT-1]}}"; do
        [[ $each == -* ]] || come="${{come:+$come }}$each"
    done
    while true; do
        case "$come" in
{cases}
        esac
        (( $#offered )) || [[ -z $come ]] && break
        [[ $come == *" "* ]] && come="${{come% *}}" || come=""
    done
    _describe -o tidegate offered || _files
}}
if [[ $funcstack[1] == _tidegate ]]; then
    _tidegate "$@"
else
    compdef _tidegate tidegate
fi
"""

FISH = """\
# fish completion for tidegate; made by `tidegate completion fish`
function __tidegate_stands_behind
    set -l come
    for each in (commandline -opc)[2..-1]
        string match -q -- '-*' $each; or set -a come $each
    end
    while set -q come[1]; and not contains -- "$come" $__tidegate_commands
        set -e come[-1]
    end
    test "$come" = "$argv[1]"
end
set -g __tidegate_commands {commands}
{cases}
"""


class Word(NamedTuple):
    """What may follow a command, and what it is for, "" where the word says that itself."""

    text: str
    help: str


def words(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, list[Word]]]:
    """Yield the path of each command and what may follow it."""
    found = [
        Word(option, _help(action))
        for action in parser._actions
        for option in action.option_strings
    ]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: _help(each) for each in action._choices_actions}
            for name, each in action.choices.items():
                found.append(Word(name, helps.get(name, "")))
                yield from words(each, f"{path} {name}".strip())
        elif action.choices and not action.option_strings:
            found += [Word(str(each), "") for each in action.choices]
    yield path, found


def _help(action: argparse.Action) -> str:
    """Return the first part of an argument's help, as a line that no shell reads otherwise."""
    text = (action.help or "").partition(";")[0].replace("%%", "%")
    return "" if text == argparse.SUPPRESS else text.replace("'", "").replace("`", "")


def completion(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return the script for `bash`, `zsh` or `fish`."""
    commands = list(words(parser))
    if shell == "bash":
        lines = [f'            "{path}") words="{_texts(found)}" ;;' for path, found in commands]
        return BASH.format(cases="\n".join(lines))
    if shell == "zsh":
        lines = [f'            "{path}") offered=({_zsh(found)}) ;;' for path, found in commands]
        return ZSH.format(cases="\n".join(lines))
    known = " ".join(f"'{path}'" for path, _ in commands)
    lines = [_fish(path, each) for path, found in commands for each in found]
    return FISH.format(commands=known, cases="\n".join(lines))


def _texts(found: Sequence[Word]) -> str:
    return " ".join(each.text for each in found)


def _zsh(found: Sequence[Word]) -> str:
    return " ".join(f"'{each.text}{f':{each.help}' if each.help else ''}'" for each in found)


def _fish(path: str, word: Word) -> str:
    description = f" -d '{word.help}'" if word.help else ""
    line = f"complete -c tidegate -n '__tidegate_stands_behind \"{path}\"'"
    if word.text.startswith("--"):
        return f"{line} -l {word.text[2:]}{description}"
    if word.text.startswith("-"):
        return f"{line} -s {word.text[1:]}{description}"
    return f"{line} -a {word.text}{description}"

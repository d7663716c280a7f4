"""Writes an edited uplink rule into a configuration file; everything else stays byte for byte."""

import copy
import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.app.checks.check import check_configuration
from gateway.app.query.rule_edit import RuleChange, RuleEdit, edit_rule
from gateway.cli.file_edit import locked, replace_file
from gateway.config.errors import ConfigurationError, raise_all
from gateway.config.load import PREFIX, parse, read_document, with_environment
from gateway.config.named_file import without_mark
from gateway.errors import TidegateError

BY_HAND = "it cannot be edited without losing comments; edit it by hand. Nothing was changed"


def write_rule(path: Path, change: RuleChange) -> tuple[RuleEdit, list[str]]:
    """Write an edit into a file; return it, and the lines that differ, the old ones first.

    The whole new file is checked before it replaces the old one. Raises TidegateError or
    ConfigurationError, after which the file is unchanged.
    """
    path = path.resolve()  # a link stays one
    with locked(path.parent):
        try:
            before = path.read_bytes()
            writable = path.stat().st_mode & 0o222 and os.access(path, os.W_OK)
        except OSError as error:
            raise ConfigurationError(str(path), "", None, error.strerror or str(error)) from error
        if not writable:
            raise TidegateError(f"{path}: may not be written; nothing was changed")
        document = parse(str(path), before)
        configuration, mistakes = read_document(str(path), document)
        raise_all(mistakes)
        edit = edit_rule(configuration, change, check_configuration)
        text, ending = without_mark(before).decode(), "\r\n" if b"\r\n" in before else "\n"
        text = text.replace(ending, "\n") if text.count(ending) == text.count("\n") else text
        mark = before.removesuffix(without_mark(before)).decode()
        after = mark + _edited_text(path, text, edit, change).replace("\n", ending)
        wanted = _edited(document, edit, change)
        if parse(str(path), after.encode()) != wanted:
            raise TidegateError(f"{path}: {BY_HAND}")
        _check_whole(path, wanted, edit)
        if after.encode() != before:
            replace_file(path, after.encode(), before)
    lines = difflib.unified_diff(before.decode().splitlines(), after.splitlines(), n=0, lineterm="")
    return edit, [line for line in lines if line[:3] not in ("---", "+++") and line[:2] != "@@"]


def _edited(document: dict[str, Any], edit: RuleEdit, change: RuleChange) -> dict[str, Any]:
    """Return the new content of the file."""
    wanted = copy.deepcopy(document)
    uplink = _uplink(wanted, edit.place)
    rules = uplink.setdefault("rule", [])
    if edit.added:
        rules.insert(edit.number, edit.table)
    elif edit.table is None:
        del rules[edit.number]
    else:
        rules[edit.number].update(change.set)
        for name in [name for name, value in change.set.items() if value is None]:
            del rules[edit.number][name]
    if not rules:
        del uplink["rule"]
    return wanted


def _uplink(document: Mapping[str, Any], place: int) -> Any:
    uplinks = document["uplink"]
    return uplinks[place] if isinstance(uplinks, list) else uplinks


def _check_whole(path: Path, wanted: dict[str, Any], edit: RuleEdit) -> None:
    """Raise what `tidegate check` reports of the new file, or that variables set the rules."""
    document = with_environment(wanted)
    configuration, mistakes = read_document(str(path), document)
    check_configuration(configuration, mistakes)
    if document.get("uplink") != wanted.get("uplink"):
        own = edit.configuration.uplinks[edit.place].rules
        if configuration.uplinks[edit.place].rules != own:
            names = ", ".join(n for n in sorted(os.environ) if n.startswith(f"{PREFIX}UPLINK"))
            raise TidegateError(f"{names} set the rules, and come before the file: change them")


def _edited_text(path: Path, text: str, edit: RuleEdit, change: RuleChange) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        lossless = "\r" not in text and document.as_string() == text
        if lossless:
            _edit(_uplink(document, edit.place), edit, change)
    except TOMLKitError:
        lossless = False
    edited = document.as_string() if lossless else ""
    lost = set(_comments(text)) - set(_comments(edited))
    if not lossless or (lost and edit.table is not None):  # a removed rule may have had some
        raise TidegateError(f"{path}: {BY_HAND}")
    return edited


def _comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]


def _edit(uplink: Any, edit: RuleEdit, change: RuleChange) -> None:
    if edit.table is None:
        _remove(uplink, edit.number)
    elif edit.added:
        _insert(uplink, edit.number, edit.table)
    else:
        _change(uplink["rule"][edit.number], change.set)


def _change(rule: Any, keys: Mapping[str, object]) -> None:
    """Set keys after the last one, before the comments of what follows."""
    tail = _pop_tail(rule)
    for name, value in keys.items():
        if value is not None:
            rule[name] = _item(value)
        elif name in rule:
            del rule[name]
    _add_text(rule, tail)


def _insert(uplink: Any, number: int, keys: Mapping[str, object]) -> None:
    """Insert a rule, with a blank line between it and the others."""
    import tomlkit
    from tomlkit.items import AoT

    rules = uplink.get("rule")
    if rules is not None and not isinstance(rules, AoT):
        table: Any = tomlkit.inline_table()
        table.update({name: _item(value) for name, value in keys.items()})
        rules.insert(number, table)
        return
    table = tomlkit.table()
    for name, value in keys.items():
        table[name] = _item(value)
    if rules is not None and number < len(rules):
        following = rules[number]
        table.trivia.indent, following.trivia.indent = following.trivia.indent, "\n"
    else:  # comments after a blank line belong to what follows
        before = rules[number - 1] if rules else uplink
        tail = _pop_tail(before)
        own = 0 if tail.startswith("\n") else tail.find("\n\n") + 1 or len(tail)
        _add_text(before, f"{tail[:own]}\n")
        _add_text(table, tail[own:])
    if rules is None:
        uplink["rule"] = tomlkit.aot()
    uplink["rule"].insert(number, table)


def _remove(uplink: Any, number: int) -> None:
    """Remove a rule; comments after it belong to what follows."""
    import tomlkit
    from tomlkit.items import AoT

    rules = uplink["rule"]
    tail = _pop_tail(rules[number])
    if not isinstance(rules, AoT):
        del rules[number]
    elif len(rules) == 1:
        body = uplink.value.body
        place = next(index for index, (key, _) in enumerate(body) if key and key.key == "rule")
        del uplink["rule"]
        body[place] = (None, tomlkit.ws(tail))
    elif number:
        del rules[number]
        _add_text(rules[number - 1], tail)
    else:
        rules[1].trivia.indent = tail.lstrip("\n") + rules[1].trivia.indent
        del rules[0]


def _pop_tail(rule: Any) -> str:
    """Return and remove the blank lines and comments after the last key of a table."""
    from tomlkit.items import Table

    text = ""
    if isinstance(rule, Table):
        body = rule.value.body
        while body and body[-1][0] is None:
            text = body.pop()[1].as_string() + text
    return text


def _add_text(rule: Any, text: str) -> None:
    import tomlkit
    from tomlkit.items import Table

    if text and isinstance(rule, Table):
        rule.value.body.append((None, tomlkit.ws(text)))


def _item(value: object) -> Any:
    """Return a value as a person would write it: quotes in a text need no backslash then."""
    import tomlkit

    if isinstance(value, str) and '"' in value and not set(value) & {"'", "\n", "\r"}:
        return tomlkit.string(value, literal=True)
    return tomlkit.item(value)

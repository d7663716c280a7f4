"""What works in a configuration, and deserves a look."""

from collections.abc import Iterator
from pathlib import Path

from gateway.app.access import access_warnings
from gateway.app.checks.door_warnings import door_warnings
from gateway.app.checks.drop_warnings import drop_warnings
from gateway.app.checks.empty_files import empty_file_warnings
from gateway.app.checks.file_warnings import file_warnings
from gateway.app.checks.name_warnings import name_warnings
from gateway.config.configuration import Configuration
from gateway.config.values import values_of
from gateway.settings import checks


def warnings(configuration: Configuration, data: Path | None = None) -> list[str]:
    """Return a line for each thing that looks like a mistake.

    These are names that others may have, what is given up after it was acknowledged, access rules
    that go by names that nobody proves, files of rules and users that say nothing, listeners that
    let in more or less than it seems, files that others may change or read, and filters that are
    hardly meant.
    """
    return [
        *name_warnings(configuration),
        *drop_warnings(configuration),
        *access_warnings(configuration),
        *empty_file_warnings(configuration),
        *door_warnings(configuration),
        *file_warnings(configuration, data),
        *_unlikely_filters(configuration),
    ]


def _unlikely_filters(configuration: Configuration) -> Iterator[str]:
    for name, key, value in values_of(configuration):
        if key.check in (checks.expression, checks.rule_expression):
            from gateway.where.language.likely_mistakes import likely_mistakes
            from gateway.where.rule import compile_rule

            where = compile_rule(value)
            if where.never_true:
                yield f"{name}: the filter can never be true: {value}"
            for mistake in likely_mistakes(value, where.expression):
                yield f"{name}: {mistake}"

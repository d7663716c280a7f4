"""The gateway's figures in Prometheus' text exposition format, version 0.0.4."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from gateway.settings.uplink import RuleSettings
from gateway.telemetry.figure import Figure, Kind
from gateway.telemetry.own_metrics import BROKER_FIGURES, OWN_FIGURES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

INFO = Figure("tidegate/info", Kind.GAUGE, "Always 1; its labels say who this is.")
INFO_LABELS = ("id", "version", "epoch", "build", "commit")
"""Text figures below `tidegate/gateway/`, shown as labels."""

ALARM = Figure("tidegate/alarm", Kind.GAUGE, "1 while the alarm is raised, 0 after its end.")

RULE = Figure("tidegate/rule/info", Kind.GAUGE, "Always 1; its labels say which rule this is.")

FIGURES = (*BROKER_FIGURES, *OWN_FIGURES)

Table = tuple[dict[str, Figure], tuple[tuple[re.Pattern[str], Figure], ...]]
"""Figures by name, and those with a variable part with the pattern of their names."""

ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Value = int | float | str
Labels = Mapping[str, str]
Reading = tuple[Labels, Value]


@lru_cache(maxsize=4)  # one for each set of kinds that a gateway has had
def _table(figures: tuple[Figure, ...]) -> Table:
    varying = tuple((figure.pattern(), figure) for figure in figures if figure.varies)
    return {figure.name: figure for figure in figures if not figure.varies}, varying


def exposition(values: Mapping[str, Value], bridges: tuple[Figure, ...] = ()) -> str:
    """Return every figure of `values` (gateway.counters.Counters) that is a number or a state.

    `bridges` are the figures of the kinds in use. Texts are omitted, except those of the gateway's
    identity. Counters exist from the start, at zero, so that a first event is an increase; any
    other metric exists once its figure does.
    """
    figures = (*FIGURES, *bridges)
    table = _table(figures)
    readings: dict[str, list[Reading]] = {
        name: [({}, 0)]
        for name, figure in table[0].items()
        if figure.kind is Kind.COUNTER and name not in values
    }
    for name, value in values.items():
        found = _find(table, name)
        if found is not None:
            figure, labels = found
            readings.setdefault(figure.name, []).append((labels, value))
    lines = list(family(INFO, [(_info(values), 1)]))
    for figure in figures:
        if figure.name in readings:
            lines += family(figure, readings[figure.name])
    return "\n".join(lines) + "\n"


def _find(table: Table, name: str) -> tuple[Figure, Labels] | None:
    """Return the figure of a name with its variable parts, None for a text."""
    fixed, varying = table
    if name in fixed:
        return fixed[name], {}
    for pattern, figure in varying:
        match = pattern.fullmatch(name)
        if match is not None:
            return figure, match.groupdict()
    return None


def alarm_metrics(states: Mapping[str, bool]) -> str:
    """Return the alarms by name, with whether each is raised."""
    return _text(ALARM, [({"alarm": name}, int(raised)) for name, raised in states.items()])


def rule_metrics(rules: Sequence[RuleSettings]) -> str:
    """Return the topic filter, `where` and stream of each uplink rule, by its place."""
    return _text(
        RULE,
        [
            ({"rule": str(n), "topic": r.topic, "where": r.where or "", "stream": r.stream}, 1)
            for n, r in enumerate(rules)
        ],
    )


def _text(figure: Figure, readings: list[Reading]) -> str:
    return "".join(f"{line}\n" for line in family(figure, readings))


def _info(values: Mapping[str, Value]) -> Labels:
    return {label: str(values.get(f"tidegate/gateway/{label}", "")) for label in INFO_LABELS}


def family(figure: Figure, readings: list[Reading]) -> Iterator[str]:
    """Yield the lines of one metric, none if it has no number."""
    metric = figure.metric
    samples = [
        f"{metric}{_listed(labels)} {number}"
        for reading in readings
        for labels, number in _numbers(figure, *reading)
    ]
    if samples:
        yield f"# HELP {metric} {figure.help}"
        yield f"# TYPE {metric} {figure.kind}"
        yield from samples


def _numbers(figure: Figure, labels: Labels, value: Value) -> Iterator[tuple[Labels, float]]:
    if figure.words:
        for word in figure.words:
            yield {**labels, "state": word}, int(word == value)
    else:
        number = _number(value)
        if number is not None:
            yield labels, number if figure.divisor == 1 else number / figure.divisor


def _number(value: Value) -> float | None:
    """Return a figure as a number; some have fixed decimals or a unit.

    None if there is none at present, which a word says.
    """
    if not isinstance(value, str):
        return value
    try:
        return float(value.partition(" ")[0])
    except ValueError:
        return None


def _listed(labels: Labels) -> str:
    listed = ",".join(f'{name}="{text.translate(ESCAPES)}"' for name, text in labels.items())
    return f"{{{listed}}}" if listed else ""

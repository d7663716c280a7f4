"""A dead band and a heartbeat for each quantity, which keep what a reader sees within a bound."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr

from pipeline.backtest.fold import Sums
from pipeline.backtest.result import Figures, error_words, figures
from pipeline.backtest.run import Asked, day_sums, messages
from pipeline.settings import Settings

_READING = r"^sensors/[^/]+/(?!command/)[^/+#\\x00]+(/(?!(set|answer)$)[^/]+)?$"
"""The topics of series whose quantity can stand in a topic filter, as Spark's SQL quotes it."""


NO_COMMAND = "NOT COALESCE(topic[3], '') IN ('set', 'answer')"
"""TRUE for the topic of a series, with an instance or without."""


@dataclass(frozen=True)
class Bound:
    """How far off the last value that was sent may be from the present one."""

    amount: float
    share: bool
    """`amount` is a share of each quantity's range, from its 1st to its 99th percentile."""
    heartbeat: int
    """Seconds after which a value goes up whatever it is."""


class Suggestion(NamedTuple):
    """A rule for a quantity, and what it would have done."""

    quantity: str
    topic: str
    """The filter of its series."""
    rule: str
    found: Figures


def suggest(
    spark: SparkSession, settings: Settings, asked: Asked, bound: Bound
) -> Iterator[Suggestion]:
    """Yield a rule for each quantity of the tables, numbers or not, that a topic can name."""
    quantity = expr(f"IF(topic RLIKE '{_READING}', split_part(topic, '/', 3), NULL)")
    rows = messages(spark, settings, asked).withColumn("quantity", quantity)
    rows = rows.where("quantity IS NOT NULL").cache()
    for name, several, numbers, low, high in _ranges(rows):
        rule = _rule(numbers, high - low if numbers else 0.0, bound)
        if several:  # its topic filter matches commands, too
            rule = f"{NO_COMMAND} AND ({rule})"
        of_quantity = rows.where(col("quantity") == name).drop("quantity")
        tried = Asked(rule, None, asked.days, asked.gateway)
        sums = [Sums(*row) for row in day_sums(of_quantity, tried).collect()]
        topic = f"sensors/+/{name}{'/#' if several else ''}"
        yield Suggestion(name, topic, rule, figures(sums, 0.0))
    rows.unpersist()


def as_toml(suggestions: list[Suggestion]) -> str:
    """Return the rules for a gateway's configuration, each with what it would have saved."""
    parts = []
    for each in suggestions:
        found = each.found
        saved = 1 - found["sent"] / found["rows"] if found["rows"] else 0.0
        largest = "" if found["largest_error"] is None else f", largest error {error_words(found)}"
        parts.append(
            f"# {found['sent']:,} of {found['rows']:,} messages: {saved:.0%} saved{largest}\n"
            f"[[uplink.rule]]\ntopic = {_quoted(each.topic)}\n"
            f"where = {_quoted(each.rule)}\n"
        )
    return "\n".join(parts)


def _quoted(text: str) -> str:
    """Return a text as TOML has it, which knows no halves of characters as JSON does."""
    plain = "".join(
        each if each.isprintable() and each not in '"\\' else f"\\U{ord(each):08X}" for each in text
    )
    return f'"{plain}"'


def _ranges(rows: DataFrame) -> list[tuple[str, bool, bool, float, float]]:
    """Return each quantity, whether it has instances and numbers, and what most lie between."""
    found = rows.groupBy("quantity").agg(
        expr("max(split_part(topic, '/', 4)) > ''").alias("several"),
        expr("count(value) * 2 > count(*)").alias("numbers"),
        expr("coalesce(percentile_approx(value, 0.01), 0D)").alias("low"),
        expr("coalesce(percentile_approx(value, 0.99), 0D)").alias("high"),
    )
    return [tuple(row) for row in found.orderBy("quantity").collect()]


def _rule(numbers: bool, spread: float, bound: Bound) -> str:
    width = bound.amount * spread if bound.share else bound.amount
    if not numbers or width <= 0:
        return f"CHANGED(payload.value) OR EVERY({bound.heartbeat})"
    return f"DEADBAND(payload.value, {width:.6g}) OR EVERY({bound.heartbeat})"

"""The expression of an uplink rule, which may have a memory (where-language 13)."""

from collections.abc import Hashable, Sequence

from gateway.mqtt.message import Message, OverBudgetError
from gateway.where.compile import TreeCompiler, constant_value
from gateway.where.evaluation.stateful import RuleMemory, Slots
from gateway.where.figures import Figures
from gateway.where.generated import generate
from gateway.where.language.conversions import Value
from gateway.where.language.expression import Expression, Stateful, walk
from gateway.where.language.folding import can_be, fold
from gateway.where.language.parser import parse
from gateway.where.language.work import NODE


class RuleWhere:
    """A compiled expression with the memory of one rule; no two rules share one.

    `text`, `expression`, `never_true`, `figures` and `steps` are as in Where. `evaluate` reads the
    memory and does not change it, so that a message may still be refused; `record` then adds the
    message to it. `slots` is the number of values that are remembered of a topic, 0 for an
    expression without memory.
    """

    __slots__ = (
        "__weakref__",
        "_compiler",
        "_nothing",
        "_slots",
        "_truth",
        "expression",
        "figures",
        "memory",
        "never_true",
        "steps",
        "text",
    )

    def __init__(self, text: str, expression: Expression) -> None:
        self.text = text
        self.expression = expression
        self.never_true = not can_be(expression, truth=True)
        self.figures = Figures()
        self.steps = NODE * len(walk(expression))
        self.memory = RuleMemory()
        self._slots = Slots()
        self._compiler = TreeCompiler({Stateful: self._slots.build})
        self._truth = self._compiler.truth(expression)
        self._nothing = (None,) * len(self._slots)

    @property
    def slots(self) -> int:
        """How many values are remembered of a topic."""
        return len(self._nothing)

    def evaluate(self, message: Message) -> bool | None:
        """Return TO_BOOLEAN of the expression's value, None for NULL.

        Raises only OverBudgetError, if the message has no `work_left`.
        """
        if self._nothing:
            self._slots.row = self._row(message.topic)
        return self._truth(message)

    def evaluate_first(self, message: Message) -> bool | None:
        """Return the result of `evaluate` for the first message of a topic; raise the same."""
        if self._nothing:
            self._slots.row = self._nothing
        return self._truth(message)

    @property
    def remembered(self) -> Sequence[Hashable]:
        """The meaning of the values of a topic's row, in order."""
        return self._slots.keys

    def inherit(self, other: "RuleWhere", topic: str) -> None:
        """Copy another rule's memory of a topic, if this one has none.

        That is the last values of the arguments that both have.
        """
        known = other.memory.get(topic)
        if known is None or not self._nothing or self.memory.get(topic) is not None:
            return
        self.memory.remember(topic, self._slots.filled_from(other.remembered, known))

    def promote(self) -> bool:
        """Make `evaluate` faster, as Where.promote does; the memory is unchanged."""
        generated = generate(self.expression, self._compiler)
        if generated is not None:
            self._truth = generated
        return generated is not None

    def record(self, message: Message, result: bool | None) -> bool:
        """Remember `message`, with `result` from `evaluate`; return whether anything changed.

        Arguments of PREV and CHANGED are remembered with every message, those of SENT and DEADBAND
        and the time for EVERY when the result is TRUE. Nothing is remembered of a message whose
        `work_left` is not enough for the arguments.
        """
        if not self._nothing:
            return False
        known = self._slots.row = self._row(message.topic)
        try:
            row = self._slots.after(message, passed=result is True)
        except OverBudgetError:
            row = known
        if row is known:
            return False
        return self.memory.remember(message.topic, row) or known is not self._nothing

    def _row(self, topic: str) -> Sequence[Value]:
        return self.memory.get(topic) or self._nothing


def compile_rule(text: str) -> RuleWhere:
    """Return the compiled expression of a rule; raise WhereError if `text` is invalid."""
    return RuleWhere(text, fold(parse(text, stateful=True), constant_value))

"""Closures for three-valued logic: NOT, AND, OR, IS (where-language 7)."""

from gateway.mqtt.message import Message
from gateway.where.evaluation.closures import Compiler, Condition
from gateway.where.language.expression import And, Expression, IsNull, IsTruth, Not, Or


def negation(expression: Not, compiler: Compiler) -> Condition:
    """Compile NOT."""
    truth = compiler.truth(expression.operands[0])

    def evaluate(message: Message) -> bool | None:
        result = truth(message)
        return None if result is None else not result

    return evaluate


def conjunction(expression: And, compiler: Compiler) -> Condition:
    """Compile AND: the first FALSE decides."""
    return _first_deciding(expression, compiler, decision=False)


def disjunction(expression: Or, compiler: Compiler) -> Condition:
    """Compile OR: the first TRUE decides."""
    return _first_deciding(expression, compiler, decision=True)


def _first_deciding(expression: Expression, compiler: Compiler, *, decision: bool) -> Condition:
    truths = tuple(map(compiler.truth, expression.operands))
    undecided = not decision

    def evaluate(message: Message) -> bool | None:
        result: bool | None = undecided
        for truth in truths:
            operand = truth(message)
            if operand is decision:
                return decision
            if operand is None:
                result = None
        return result

    return evaluate


def is_null(expression: IsNull, compiler: Compiler) -> Condition:
    """Compile IS NULL."""
    value = compiler.value(expression.operands[0])
    return lambda message: value(message) is None


def is_truth(expression: IsTruth, compiler: Compiler) -> Condition:
    """Compile IS TRUE and IS FALSE."""
    truth = compiler.truth(expression.operands[0])
    wanted = expression.truth
    return lambda message: truth(message) is wanted

"""A second tier for expressions that are evaluated often: one Python function for the whole tree.

The source is made of the validated tree alone. Names, literals and all that the source calls
enter through the namespace as K1, K2, ...; there are no builtins in it. Chains become statements,
one after the other, so that their length costs no nesting. What has no form of its own here is
called as the closure that it is compiled to anyhow.
"""

from typing import Final

from gateway.where.evaluation.closures import Compiler, Condition
from gateway.where.generated.conditions import CONDITIONS
from gateway.where.generated.source import Source
from gateway.where.generated.values import VALUES
from gateway.where.language.expression import Expression, walk

MAXIMUM_NODES: Final = 128
"""Larger trees stay closures: the function would take milliseconds to make."""


def generate(expression: Expression, compiler: Compiler) -> Condition | None:
    """Return a function that gives what `compiler.truth(expression)` gives, only sooner.

    None for a tree of more than MAXIMUM_NODES.
    """
    if len(walk(expression)) > MAXIMUM_NODES:
        return None
    function: Condition = Source(compiler, VALUES, CONDITIONS).function(expression)
    return function

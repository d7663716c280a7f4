from hypothesis import given
from hypothesis import strategies as st

from gateway.where.language.comparison import MIRRORED, ORDERS, compare
from gateway.where.language.conversions import Value
from tests.support.where.walker import compared

TEXTS = st.sampled_from(["", "a", "B", "true", "False", "0", "1", "1.0", "9007199254740993"])
NUMBERS = st.sampled_from([0, 1, -0.0, 1.0, 2**53 + 1, 2.0**53, 2**63 - 1, 2.0**63])
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.booleans(), TEXTS, st.text(), NUMBERS, st.just({}), st.just([1])
)


@given(st.sampled_from(sorted(ORDERS)), VALUES, VALUES)
def test_compare(operator: str, left: Value, right: Value) -> None:
    result = compare(ORDERS[operator], left, right)
    assert result is compared(operator, left, right)
    assert result is compare(ORDERS[MIRRORED[operator]], right, left)

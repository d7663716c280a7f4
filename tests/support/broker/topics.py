"""Hypothesis strategies for topic names and topic filters that collide often."""

from hypothesis import strategies as st

LEVELS = st.sampled_from(["", "a", "b", "ab", "$a", "é"])
_FIRST = st.one_of(LEVELS, st.just("$SYS"))

_NAMES = st.builds(
    lambda first, rest: "/".join([first, *rest]), _FIRST, st.lists(LEVELS, max_size=4)
)
TOPICS = _NAMES.filter(bool)
"""Valid topic names, `$` topics and empty levels among them."""


def _filter(first: str, rest: list[str], ending: list[str]) -> str:
    return "/".join([first, *rest, *ending])


TOPIC_FILTERS = st.one_of(
    st.just("#"),
    st.builds(
        _filter,
        st.one_of(_FIRST, st.just("+")),
        st.lists(st.one_of(LEVELS, st.just("+")), max_size=4),
        st.sampled_from([[], ["#"]]),
    ).filter(bool),
)
"""Valid topic filters, wildcards in every place that the specification allows."""

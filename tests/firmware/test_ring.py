"""The packed queue beside a plain list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from node.ring import _BODY_MAX, SIZE_MIN, Ring

ALIKE = st.builds(
    lambda position, byte: bytes(position) + bytes([byte]) + bytes(200 - position),
    st.integers(0, 200),
    st.integers(0, 255),
)


@given(st.lists(st.none() | ALIKE | st.binary(max_size=_BODY_MAX), max_size=60))
def test_what_is_kept_comes_back_in_its_order(steps: list[bytes | None]) -> None:
    ring, model = Ring(SIZE_MIN + 100), list[bytes]()
    for body in steps:
        if body is not None:
            while not ring.append(body):
                assert ring.pop() == model.pop(0)
            model.append(body)
        elif model:
            assert ring.pop() == model.pop(0)
        assert len(ring) == len(model)
    assert [ring.pop() for _ in model] == model


def test_the_largest_entry_fits_into_the_smallest_memory() -> None:
    ring = Ring(SIZE_MIN)
    bodies = [bytes([fill]) * _BODY_MAX for fill in (1, 2, 3)]
    assert [ring.append(body) for body in bodies] == [True, False, False]
    assert ring.pop() == bodies[0]
    assert ring.append(bodies[-1])
    assert ring.pop() == bodies[-1]
    assert len(ring) == 0


def test_bounds() -> None:
    with pytest.raises(ValueError, match=f"{SIZE_MIN - 1} bytes"):
        Ring(SIZE_MIN - 1)
    with pytest.raises(ValueError, match=f"{_BODY_MAX + 1} bytes"):
        Ring(SIZE_MIN).append(bytes(_BODY_MAX + 1))
    with pytest.raises(IndexError):
        Ring(SIZE_MIN).pop()

import gc

from pipeline.tables import cycles


def test_python_looks_for_cycles_after_many_rows_and_still_finds_them() -> None:
    before = gc.get_threshold()
    try:
        cycles.look_rarely()
        assert gc.isenabled()
        assert gc.get_threshold()[0] >= 10_000
    finally:
        gc.set_threshold(*before)

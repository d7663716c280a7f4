from tui.series import FIGURES, OLDER, RENEWED, Course


def answer(until: int, **figures: list[float | None]) -> dict[str, object]:
    return {"step": 1, "until": until * 1_000, "figures": figures}


def test_a_course_is_asked_for_whole_and_then_its_end() -> None:
    course = Course(1, 599)
    asked = dict(course.query().request)
    assert (asked["last"], asked["figures"]) == (599, ",".join(FIGURES))
    course.apply(answer(1_000, messages_in=[1.0, 2.0, None]), "")
    assert dict(course.query().request)["last"] == RENEWED
    course.apply(answer(1_002, messages_in=[3.0, 4.0]), "")
    assert course.values("messages_in")[-5:] == [1.0, 2.0, None, 3.0, 4.0]
    assert course.values("messages_in", back=2)[-3:] == [1.0, 2.0, None]
    assert course.times() == (403, 1_002)
    assert course.values("unknown") == []


def test_no_more_than_8192_numbers_are_asked_for() -> None:
    asked = dict(Course(60, 1_439).query().request)
    assert int(str(asked["last"])) * len(FIGURES) <= 8_192


def test_questions_are_no_traffic() -> None:
    course = Course(1, 5)
    course.apply(answer(9, messages_in=[5.0, 2.0], readings=[1.0, 1.0], queries=[1.0, 9.0]), "")
    assert course.incoming() == [None, None, None, 5.0, 0.0]


def test_an_older_gateway_has_fewer_figures() -> None:
    course = Course(1, 5)
    course.apply({}, "there is no figure 'readings'; there are: ...")
    assert dict(course.query().request)["figures"] == ",".join(OLDER)


def test_after_a_gap_everything_is_asked_for_again() -> None:
    course = Course(1, 599)
    course.apply(answer(1_000, messages_in=[1.0]), "")
    course.apply(answer(2_000, messages_in=[1.0]), "")
    assert course.end == 0
    course.apply(answer(2_001, messages_in=[1.0]), "")
    assert course.values("messages_in")[-1] == 1.0


def test_what_is_no_course() -> None:
    course = Course(1, 5)
    for document in (
        {},
        {"figures": 5, "until": 1, "step": 1},
        {"figures": {}, "until": 1, "step": 60},
    ):
        course.apply(document, "")
    course.apply(answer(9, messages_in=["x", True]), "")  # type: ignore[list-item]
    assert course.values("messages_in") == [None] * 5 or course.values("messages_in") == []

from gateway.app.parts import Alarms, Happening, Happenings, Stage


def test_alarms_of_the_run_before_are_published_and_are_events() -> None:
    events, published = list[Happening](), dict[str, str]()
    happenings = Happenings()
    happenings.listen(events.append)
    alarms = Alarms({"database": "precise"}, happenings)
    alarms("database", "vague")
    alarms("disk", "full")
    alarms.publish(published.__setitem__)
    assert published == {"database": "precise", "disk": "full"}
    assert alarms.states == {"database": True, "disk": True}
    begun = {each.subject: each.text for each in events if each.stage is Stage.BEGINS}
    assert begun == published
    alarms("database", "")
    assert (events[-1].stage, events[-1].subject) == (Stage.ENDS, "database")
    assert published["database"] == ""

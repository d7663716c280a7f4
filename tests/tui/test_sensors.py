import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.sensors import LATE_AFTER, MAX_PAYLOAD, MAX_RECENT, MAX_TOPIC, Sensor, Sensors

NOW = 1_763_740_000.0


def heard(sensors: Sensors, topic: str) -> Sensor:
    sensor = sensors.get(topic)
    assert sensor is not None
    return sensor


def test_a_reading_is_kept_with_its_age() -> None:
    sensors = Sensors()
    sensors.hear("sensors/n1/temperature", b'{"value":21.5,"unit":"C"}', NOW)
    sensor = heard(sensors, "sensors/n1/temperature")
    assert (sensor.shown_name, sensor.reading.text, sensor.messages) == (
        "n1/temperature",
        "21.5",
        1,
    )
    assert sensor.age(NOW + 7) == 7


def test_a_retained_message_is_as_old_as_it_says() -> None:
    sensors = Sensors()
    sensors.hear("a", b'{"value":1,"time":1763739990000}', NOW, retained=True)
    sensors.hear("b", b"1", NOW, retained=True)
    assert heard(sensors, "a").age(NOW) == 10
    assert heard(sensors, "b").age(NOW) is None
    assert sensors.late(NOW + 9_999) == 0


def test_a_clock_ahead_of_ours_gives_no_negative_age() -> None:
    sensors = Sensors()
    sensors.hear("a", b'{"value":1,"time":1763740060000}', NOW, retained=True)
    assert heard(sensors, "a").age(NOW) == 0


def test_what_sensors_are_told_is_no_reading() -> None:
    sensors = Sensors()
    for topic in ("sensors/n1/command", "sensors/n1/command/answer", "sensors/n1/power/set"):
        sensors.hear(topic, b'{"command":"read"}', NOW)
    assert len(sensors) == 0


def test_recent_numbers_and_payload_are_bounded() -> None:
    sensors = Sensors()
    for number in range(MAX_RECENT + 5):
        sensors.hear("a", str(number).encode(), NOW + number)
    sensors.hear("a", b"x" * 5_000, NOW + 100)
    sensor = heard(sensors, "a")
    assert list(sensor.recent) == [float(number) for number in range(5, MAX_RECENT + 5)]
    assert len(sensor.payload) == MAX_PAYLOAD


def test_late_is_three_times_the_usual_interval() -> None:
    sensors = Sensors()
    for number in range(5):
        sensors.hear("slow", b"1", NOW + 60 * number)
    last = NOW + 240
    slow = heard(sensors, "slow")
    assert not sensors.is_late(slow, last + 170)
    assert sensors.is_late(slow, last + 181)
    assert sensors.late(last + 181) == 1


def test_silence_counts_only_while_somebody_listens() -> None:
    sensors = Sensors()
    for second in (0, 10, 20):
        sensors.hear("a", b"1", NOW + second)
    sensors.stop_listening(NOW + 25)
    sensors.stop_listening(NOW + 300)
    assert sensors.late(NOW + 500) == 0
    sensors.listen(NOW + 500)
    assert sensors.late(NOW + 530) == 0
    assert sensors.late(NOW + 531) == 1
    sensors.hear("a", b"1", NOW + 540)
    assert heard(sensors, "a").usual_interval == 10


def test_nothing_is_late_before_half_a_minute_or_after_one_message() -> None:
    sensors = Sensors()
    sensors.hear("fast", b"1", NOW)
    sensors.hear("once", b"1", NOW)
    sensors.hear("fast", b"1", NOW + 0.1)
    assert sensors.late(NOW + LATE_AFTER) == 0
    assert sensors.late(NOW + LATE_AFTER + 1) == 1


def test_the_least_recently_heard_is_dropped_and_counted() -> None:
    sensors = Sensors(limit=3)
    for topic in ("a", "b", "c", "a", "d"):
        sensors.hear(topic, b"1", NOW)
    assert sensors.matching("") == ["a", "c", "d"]
    assert sensors.dropped == 1
    assert len(sensors) == 3


def test_a_topic_that_is_too_long_is_counted_and_not_kept() -> None:
    sensors = Sensors()
    sensors.hear("s" * (MAX_TOPIC + 1), b"1", NOW)
    assert (len(sensors), sensors.refused) == (0, 1)


@pytest.mark.parametrize(
    ("words", "topics"),
    [
        ("", ["sensors/Barn/temperature", "sensors/barn/humidity", "sensors/roof/temperature"]),
        ("barn", ["sensors/Barn/temperature", "sensors/barn/humidity"]),
        ("TEMP barn", ["sensors/Barn/temperature"]),
        ("nothing", []),
    ],
)
def test_matching(words: str, topics: list[str]) -> None:
    sensors = Sensors()
    for topic in ("sensors/roof/temperature", "sensors/barn/humidity", "sensors/Barn/temperature"):
        sensors.hear(topic, b"1", NOW)
    assert sensors.matching(words) == topics


def test_the_revision_rises_only_with_the_set_of_sensors() -> None:
    sensors = Sensors()
    sensors.hear("a", b"1", NOW)
    before = sensors.revision
    sensors.hear("a", b"2", NOW)
    assert sensors.revision == before
    sensors.hear("b", b"2", NOW)
    assert sensors.revision > before


@given(st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=20)), max_size=40))
def test_never_more_than_the_limit(messages: list[tuple[str, bytes]]) -> None:
    sensors = Sensors(limit=4)
    for topic, payload in messages:
        sensors.hear(topic, payload, NOW)
    distinct = {topic for topic, _ in messages}
    assert len(sensors) == min(4, len(distinct))
    assert set(sensors.matching("")) <= distinct

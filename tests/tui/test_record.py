from pathlib import Path

import pytest

from tui.inbox import Arrival
from tui.link import Answered, Link, Phase
from tui.queries import STATUS
from tui.record import Recorder, RecordError, Replay
from tui.session import Session


def test_all_is_told_though_the_last_message_came_before_the_last_answer_was_taken(
    tmp_path: Path,
) -> None:
    file = tmp_path / "session"
    with file.open("w") as opened:
        recorder = Recorder(opened)
        recorder.event(Link(Phase.CONNECTED), 11.0)  # taken in one look at what had come
        recorder.event(Answered(STATUS.key, b'{"gateway":"barn"}'), 11.0)
        recorder.message(Arrival("sensors/n1/t", b"1", False, 10.5))
    replay = Replay(file)
    replay.elapsed = 3_600.0
    session = Session(replay)
    session.tick(replay.clock(), lambda: 0.0)
    session.tick(replay.clock(), lambda: 0.0)
    assert replay.clock() == 11.0
    assert session.link.phase is Phase.CONNECTED
    assert session.gateway() == "barn"
    assert session.state.topics.get("sensors/n1/t") is not None


@pytest.mark.parametrize("text", ["", "[", "[1]\n", '["x","link"]\n'])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "session"
    file.write_text(text)
    with pytest.raises(RecordError, match="session"):
        Replay(file)

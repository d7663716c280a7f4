from hypothesis import given
from hypothesis import strategies as st

from gateway.session.span import SPAN_OVERHEAD, Span
from tests.support.broker.publications import publish
from tests.support.broker.spans import OVERHEAD, Row, keep


@given(st.lists(st.sampled_from([0, 1, 500]), min_size=2, max_size=6), st.booleans(), st.data())
def test_two_parts_are_as_much_as_the_whole(
    sizes: list[int], written: bool, data: st.DataObject
) -> None:
    publication = publish([b"x" * size for size in sizes])
    first = data.draw(st.integers(0, len(sizes) - 2))
    whole = Span(publication, first, len(sizes) - first, 2, True, (7,), "$share/g/#")
    if written:
        keep(whole, Row(100, len(sizes), 3))
    count = data.draw(st.integers(1, whole.count - 1))
    head, tail = whole.split(count)
    assert (head.first, head.count, tail.first) == (first, count, first + count)
    assert head.count + tail.count == whole.count
    assert head.size + tail.size == whole.size
    assert head.disk_bytes + tail.disk_bytes == whole.disk_bytes
    each = SPAN_OVERHEAD * count + publication.size(first, count)
    assert head.size == each
    for part in (head, tail):
        assert (part.publication, part.row) == (publication, whole.row)
        assert (part.qos, part.retain) == (2, True)
        assert (part.subscription_identifiers, part.topic_filter) == ((7,), "$share/g/#")
        assert part.packet_id == 0
    if written:
        assert head.disk_bytes == publication.size(first, count) + count * OVERHEAD
        assert (head.sequence, tail.sequence) == (100 + first, 100 + first + count)
        assert head.last == tail.last == 99 + len(sizes)
    else:
        assert (head.sequence, head.last, head.disk_bytes) == (0, 0, 0)

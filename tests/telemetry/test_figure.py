from gateway.telemetry.figure import Figure, Kind
from tests.support.table import table


@table(
    ("name", "kind", "metric"),
    [
        ("clients/connected", Kind.GAUGE, "tidegate_clients_connected"),
        ("bytes/received", Kind.COUNTER, "tidegate_bytes_received_total"),
        ("retained messages/count", Kind.GAUGE, "tidegate_retained_messages"),
        ("tidegate/uplink/sent", Kind.COUNTER, "tidegate_uplink_sent_total"),
        ("tidegate/rules/<rule>/evaluated", Kind.COUNTER, "tidegate_rule_evaluated_total"),
        ("tidegate/outbox/stream/<stream>/rows", Kind.GAUGE, "tidegate_outbox_stream_rows"),
        ("tidegate/outbox/evicted/<policy>", Kind.COUNTER, "tidegate_outbox_evicted_total"),
        ("tidegate/serial/<bridge>/dropped", Kind.GAUGE, "tidegate_serial_bridge_dropped"),
        ("load/bytes/sent/<minutes>min", Kind.GAUGE, "tidegate_load_bytes_sent"),
        ("tidegate/storage/commit_ms_mean", Kind.GAUGE, "tidegate_storage_commit_mean_seconds"),
        ("tidegate/rules/<rule>/microseconds", Kind.GAUGE, "tidegate_rule_seconds"),
        ("tidegate/storage/card_days", Kind.GAUGE, "tidegate_storage_card_seconds"),
    ],
)
def test_the_name_of_a_metric(name: str, kind: Kind, metric: str) -> None:
    assert Figure(name, kind, "").metric == metric


@table(
    ("name", "divisor"),
    [
        ("tidegate/storage/commit_ms_mean", 1000),
        ("tidegate/rules/<rule>/microseconds", 1_000_000),
        ("tidegate/storage/card_days", 1 / 86_400),
        ("tidegate/storage/commit_rows_mean", 1),
    ],
)
def test_times_are_in_seconds(name: str, divisor: float) -> None:
    assert Figure(name, Kind.GAUGE, "").divisor == divisor


def test_a_name_can_be_given() -> None:
    assert Figure("uptime", Kind.GAUGE, "", "tidegate_uptime_seconds").metric.endswith("_seconds")


def test_what_varies_is_found_in_a_name() -> None:
    pattern = Figure("load/bytes/sent/<minutes>min", Kind.GAUGE, "").pattern()
    match = pattern.fullmatch("load/bytes/sent/15min")
    assert match is not None
    assert match.groupdict() == {"minutes": "15"}
    assert pattern.fullmatch("load/bytes/sent/15") is None
    assert pattern.fullmatch("load.bytes/sent/15min") is None

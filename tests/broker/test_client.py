from gateway.broker.client import Client
from gateway.broker.connecting.connection_info import Anonymous
from gateway.mqtt.connection import Connection
from gateway.mqtt.packets import MQTT_5
from gateway.mqtt.properties import NO_PROPERTIES, Properties
from gateway.mqtt.reason_codes import ReasonCode
from tests.support.broker.broker_harness import Harness


def test_a_reason_is_given_where_it_is_wanted_or_allowed_all_the_same() -> None:
    client = Client(Connection(1_024), Anonymous(), "peer", 0.0)
    reason = Properties(reason_string="why")
    assert client.explain("why") == reason
    client.problem_information = False
    assert client.explain("why") is NO_PROPERTIES
    assert client.explain("why", always=True) == reason
    assert client.explain("", always=True) is NO_PROPERTIES


def test_a_connection_without_a_session_is_closed_without_a_word() -> None:
    touched: list[bool] = []
    connection = Connection(1_024, on_output=lambda: touched.append(True))
    connection.version = MQTT_5
    client = Client(connection, Anonymous(), "peer", 0.0)
    client.disconnect(ReasonCode.SERVER_SHUTTING_DOWN, "the gateway stops")
    assert client.closing
    assert touched
    assert connection.data_to_send(0) is None


def test_a_second_disconnect_says_nothing_more(harness: Harness) -> None:
    client = harness.connect()
    client.client.disconnect(ReasonCode.SERVER_SHUTTING_DOWN)
    client.client.disconnect(ReasonCode.UNSPECIFIED_ERROR)
    harness.settle()
    (disconnect,) = client.take()
    assert getattr(disconnect, "reason_code", None) == ReasonCode.SERVER_SHUTTING_DOWN


def test_closing_tells_the_transport_even_if_it_was_told_of_output(harness: Harness) -> None:
    """A transport that cannot write now must learn all the same that it is to close."""
    client = harness.connect()
    client.reads = False
    client.client.connection.touched = True
    before = client.touched
    client.client.close()
    assert client.touched == before + 1

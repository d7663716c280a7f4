import socket
from pathlib import Path

from tests.support.processes.gateway_process import GatewayProcess

CLIENTS = 20

CONNECTED = b"\x20\x02\x00\x00"
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"


def connect(number: int) -> bytes:
    name = b"client-%02d" % number
    body = b"\x00\x04MQTT\x04\x02\x00\x00" + len(name).to_bytes(2, "big") + name
    return bytes((0x10, len(body))) + body


def receive(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        assert more, "the gateway closed the connection"
        data += more
    return data


def test_what_was_logged_before_a_kill_is_there_in_order(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path)
    gateway.start()
    clients = []
    try:
        for number in range(CLIENTS):
            clients.append(socket.create_connection(("127.0.0.1", gateway.port), 60))
            clients[-1].sendall(connect(number))
        for client in clients:
            assert receive(client, len(CONNECTED)) == CONNECTED
        for client in clients:  # the turn of its CONNECT has ended before another one answers
            client.sendall(PINGREQ)
            assert receive(client, len(PINGRESP)) == PINGRESP
    finally:
        gateway.kill()
        for client in clients:
            client.close()
    lines = [line for line in gateway.log().splitlines() if "connected from" in line]
    assert [line.split("'")[1] for line in lines] == [f"client-{n:02}" for n in range(CLIENTS)]

"""Ends with 0 while /healthz of a container's gateway says that it is well, otherwise with 1.

A gateway without [metrics], or that answers elsewhere, is well if it takes connections.
"""

import os
import socket
import sys
from http.client import HTTPConnection, HTTPException

PORT = int(os.environ.get("TIDEGATE__METRICS__PORT", "9234"))
LISTENER = int(os.environ.get("TIDEGATE__LISTENER__0__PORT", "1883"))
SECONDS = 8.0


def main() -> int:
    """Ask, and say why not."""
    try:
        connection = HTTPConnection("127.0.0.1", PORT, timeout=SECONDS)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        print(answer.read().decode().strip())
    except ConnectionRefusedError:
        return takes_connections()
    except (OSError, HTTPException) as error:
        print(error)
        return 1
    return 0 if answer.status == 200 else 1  # OK


def takes_connections() -> int:
    """Return 0 if the gateway's first listener does."""
    try:
        socket.create_connection(("127.0.0.1", LISTENER), SECONDS).close()
    except OSError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

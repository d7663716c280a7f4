"""Prometheus metadata of the figures that Mosquitto has too."""

from gateway.telemetry.figure import Figure, Kind

COUNTER, GAUGE = Kind.COUNTER, Kind.GAUGE

A_MINUTE = "a minute, averaged over so many minutes"

BROKER_FIGURES = (
    Figure("uptime", GAUGE, "Seconds since the start.", "tidegate_uptime_seconds"),
    Figure("clients/connected", GAUGE, "Clients that are connected."),
    Figure("clients/disconnected", GAUGE, "Persistent sessions without a connection."),
    Figure("clients/total", GAUGE, "Sessions, connected or not.", "tidegate_clients"),
    Figure("clients/maximum", GAUGE, "Most clients connected at one time."),
    Figure("clients/active", GAUGE, "Older name of clients connected."),
    Figure("clients/inactive", GAUGE, "Older name of clients disconnected."),
    Figure("clients/expired", COUNTER, "Sessions that ended by their expiry interval."),
    Figure("messages/received", COUNTER, "Control packets received."),
    Figure("messages/sent", COUNTER, "Control packets sent."),
    Figure("publish/messages/received", COUNTER, "PUBLISH packets received."),
    Figure("publish/messages/sent", COUNTER, "PUBLISH packets sent."),
    Figure("publish/messages/dropped", COUNTER, "Messages given up for a receiver."),
    Figure("publish/messages/expired", COUNTER, "Messages that expired before they were sent."),
    Figure("publish/bytes/received", COUNTER, "Payload bytes of PUBLISH packets received."),
    Figure("publish/bytes/sent", COUNTER, "Payload bytes of PUBLISH packets sent."),
    Figure("bytes/received", COUNTER, "Bytes received from the network."),
    Figure("bytes/sent", COUNTER, "Bytes sent to the network."),
    Figure("subscriptions/count", GAUGE, "Subscriptions of all sessions."),
    Figure("shared_subscriptions/count", GAUGE, "Shared subscriptions of all sessions."),
    Figure("retained messages/count", GAUGE, "Retained messages."),
    Figure("store/messages/count", GAUGE, "Messages retained or waiting for a session."),
    Figure("store/messages/bytes", GAUGE, "Bytes of messages retained or waiting for a session."),
    Figure("messages/stored", GAUGE, "Older name of store messages."),
    Figure("load/messages/received/<minutes>min", GAUGE, f"Control packets received {A_MINUTE}."),
    Figure("load/messages/sent/<minutes>min", GAUGE, f"Control packets sent {A_MINUTE}."),
    Figure("load/publish/received/<minutes>min", GAUGE, f"PUBLISH packets received {A_MINUTE}."),
    Figure("load/publish/sent/<minutes>min", GAUGE, f"PUBLISH packets sent {A_MINUTE}."),
    Figure("load/publish/dropped/<minutes>min", GAUGE, f"Messages given up {A_MINUTE}."),
    Figure("load/bytes/received/<minutes>min", GAUGE, f"Bytes received {A_MINUTE}."),
    Figure("load/bytes/sent/<minutes>min", GAUGE, f"Bytes sent {A_MINUTE}."),
    Figure("load/connections/<minutes>min", GAUGE, f"CONNECT packets {A_MINUTE}."),
    Figure("load/sockets/<minutes>min", GAUGE, f"Network connections {A_MINUTE}."),
)

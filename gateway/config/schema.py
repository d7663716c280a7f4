"""Every section and key of the configuration file with the check of its value."""

from gateway.config.checks import (
    Check,
    boolean,
    fleet_url,
    gateway_id,
    number,
    one_of,
    stream,
    text,
    topic_prefix,
    whole_number,
)

Section = dict[str, Check]

GATEWAY: Section = {"id": gateway_id}

LISTENER: Section = {
    "host": text,
    "port": whole_number(1, 65_535),
    "allow_anonymous": boolean,
    "password_file": text,
}

BROKER: Section = {
    "maximum_packet_size": whole_number(1024, 256 * 1024 * 1024),
    "connect_timeout": whole_number(1, 3600),
    "topic_alias_maximum": whole_number(0, 65_535),
    "sys_interval": number(0.1, 3600),
}

RULE: Section = {
    "topic": text,
    "where": text,
    "stream": stream,
    "lane": one_of("live", "backlog"),
}

UPLINK: Section = {
    "url": fleet_url,
    "directory": text,
    "username": text,
    "password_file": text,
    "ca_file": text,
    "client_id": text,
    "prefix": topic_prefix,
    "identity": boolean,
}

SERIAL: Section = {
    "port": text,
    "format": one_of("frames", "json"),
    "baud": whole_number(50, 4_000_000),
    "node": text,
}

SIMULATOR: Section = {"port": text, "node": text, "interval": number(0.01, 3600)}

TABLES = ("gateway", "broker", "uplink")
ARRAYS = ("listener", "serial", "simulator")

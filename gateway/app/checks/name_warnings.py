"""Warnings for gateway ids that another gateway of the fleet may have as well."""

from collections.abc import Iterator

from gateway.config.configuration import Configuration
from gateway.config.host_name import is_common


def name_warnings(configuration: Configuration) -> Iterator[str]:
    """Give a line if the id is a distribution's default host name, or was made of one."""
    chosen, name = configuration.gateway.id, configuration.gateway_id
    if is_common(name):
        reason = "there is no machine id to make it unique" if chosen is None else "it was set so"
        yield (
            f"gateway.id: {name!r} is the name of many boards, and {reason}:"
            " two gateways of one id disturb each other at the fleet"
        )
    elif chosen is None and is_common(name.rpartition("-")[0]):
        yield (
            f"gateway.id: this gateway is {name!r}, since many boards have its host's name:"
            " set [gateway] id to choose a name"
        )

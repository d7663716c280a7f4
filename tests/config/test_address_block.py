"""Which addresses count as one peer."""

from gateway.config.addresses import address_block
from tests.support.table import table

BLOCKS = {
    "192.168.1.5": "192.168.1.5",
    "::ffff:192.168.1.5": "192.168.1.5",
    "::1": "::1",
    "2001:db8:0:1::5": "2001:db8:0:1::/64",
    "2001:db8:0:1:ffff::6": "2001:db8:0:1::/64",
    "fe80::1%eth0": "fe80::/64",
    "process 5 of user 0: a": "process 5 of user 0: a",
    "": "",
}


@table("address", BLOCKS)
def test_a_block(address: str) -> None:
    assert address_block(address) == BLOCKS[address]

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUBSCRIPTIONS = 50_000

GROWTH = """
import ctypes, gc, json, sys
from pathlib import Path
from gateway.routing.budget import Budget
from gateway.routing.router import Router
from gateway.routing.subscriptions.subscription import Subscription

class Someone:
    inline = False

    def __init__(self, client_id):
        self.client_id = client_id

def resident():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Rss:")).split()[1]) * 1024

count, shape = int(sys.argv[1]), sys.argv[2]
router = Router(Budget())
subscribers = [Someone(f"c{number}") for number in range(int(sys.argv[3]))]
router.discard(router.add(Subscription(subscribers[0], "a", 0)))
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # what imports freed is not to be used again
before, told = resident(), router.bytes
for number in range(count):
    subscriber = subscribers[number * len(subscribers) // count]
    topic_filter = shape.format(number=number, few=number % 17, some=number // 17 % 29)
    router.add(Subscription(subscriber, topic_filter, number % 3))
print(json.dumps([resident() - before, router.bytes - told]))
"""


def growth(shape: str, subscribers: int) -> tuple[float, float]:
    """Return the bytes that a subscription takes, measured and as the router says.

    In a process of its own, where nothing was freed that could be used again.
    """
    command = [sys.executable, "-c", GROWTH, str(SUBSCRIPTIONS), shape, str(subscribers)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, check=True, capture_output=True, cwd=root)
    measured, output = json.loads(done.stdout)
    return measured / SUBSCRIPTIONS, output / SUBSCRIPTIONS


@pytest.mark.uncovered
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc to ask")
@pytest.mark.parametrize(
    ("shape", "subscribers", "most"),
    [
        ("plant/area{few}/line{some}/dev{number:07}/cmd", 10, 80),
        ("site/{few}/floor/{some}/device/{number}/+", 10, 80),
        ("plant/area{few}/line{some}", SUBSCRIPTIONS // 4, 80),
        ("plant/area{few}/line{some}/dev{number:07}/cmd", SUBSCRIPTIONS, 190),
    ],
)
def test_subscriptions_take_what_the_router_says(shape: str, subscribers: int, most: int) -> None:
    measured, reported = growth(shape, subscribers)
    assert measured <= most
    assert 0.75 < reported / measured < 1.15  # tables that grew leave holes in the heap

"""How much does a message, a connection, a subscription cost, beside Mosquitto in the same run?

    .venv/bin/python -m bench.side_by_side [--rounds N] [--scenarios qos0,offline] [--mqtt 4,5]
        [--only mosquitto,tidegate] [--tidegate "command"] [--tree LABEL=FOLDER] [--seconds S]
        [--write] [--add]

Each broker is started anew for each measurement and pinned to one core, the load generator to
another. Rounds are interleaved, and tables have medians, and ratios to Mosquitto in bold.
"""

from bench.harness.comparison import Comparison
from bench.side_by_side.scenarios import SCENARIOS

if __name__ == "__main__":
    raise SystemExit(Comparison("side_by_side", __doc__, SCENARIOS).main())

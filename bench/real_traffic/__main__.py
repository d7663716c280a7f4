"""How much does traffic as gateways see it cost, beside Mosquitto in the same run?

    .venv/bin/python -m bench.real_traffic [--rounds N] [--kinds A,B,C] [--mqtt 4,5] [--seconds S]
        [--only mosquitto,tidegate,compiled] [--tree LABEL=FOLDER] [--write] [--add] [--list]

Topics alternate and every payload differs, see bench/README.md. `--tree` measures the gateway of
another checkout in the same run; it may be given several times. A letter that names no kind by
itself stands for all kinds that begin with it.
"""

from bench.harness.comparison import Comparison
from bench.real_traffic.kinds import KINDS

if __name__ == "__main__":
    raise SystemExit(Comparison("real_traffic", __doc__, KINDS, "kinds").main())

"""`tidegate-pipeline simulate`: a made-up fleet with the truth beside it."""

import argparse
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.operation.preflight import check_arrow

ROWS = 48


def add_simulate(commands: Any) -> None:
    """Add the command to the parser's sub-commands."""
    command = commands.add_parser(
        "simulate", help="write a generated landing zone and its truth, for tests"
    )
    command.add_argument(
        "--out", type=Path, default=Path("var/simulated"), metavar="DIR", help="folder to write"
    )
    command.add_argument("--gateways", type=int, default=10, help="number of gateways")
    command.add_argument("--days", type=int, default=30, help="number of days")
    command.add_argument("--rows", type=int, default=ROWS, help="rows of a gateway and day")
    command.add_argument("--seed", type=int, default=1, help="seed of the random choices")
    command.set_defaults(run=run_simulate)


def run_simulate(options: argparse.Namespace) -> int:
    """Write the fleet; returns the exit status."""
    check_arrow()
    from pipeline.simulate.fleet import simulate

    for name in ("gateways", "days", "rows"):
        if getattr(options, name) < 1:
            raise PipelineError(f"--{name} {getattr(options, name)} is less than 1")
    if (options.out / "landing").exists():
        raise PipelineError(f"{options.out / 'landing'} exists: name another folder with --out")
    records, numbers = simulate(
        options.out, options.gateways, options.days, options.seed, options.rows
    )
    print(f"{records:,} records, {numbers:,} numbers: {options.out}")
    return 0

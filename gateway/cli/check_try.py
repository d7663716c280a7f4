"""`tidegate check --try`: what the other side of each uplink allows."""

from gateway.app.uplink.try_out import try_uplinks
from gateway.cli.own_gateway import socket_url
from gateway.config.configuration import Configuration


def show_trials(configuration: Configuration) -> int:
    """Print the findings; return 1 if a link fails, or not everything works."""
    trials = try_uplinks(configuration, running=socket_url() is not None)
    if not trials:
        print(f"{configuration.file}: no uplink has a url, so there is nothing to try")
    for trial in trials:
        for line in trial.allows:
            print(f"{trial.name}: {line}")
        for line in trial.fails:
            print(f"{trial.name}: fails: {line}")
    return 1 if any(trial.fails for trial in trials) else 0

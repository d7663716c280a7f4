"""How many connections the operating system lets the gateway hold."""

import resource


def raise_limit() -> int:
    """Raise the soft limit of open descriptors to the hard one; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard

"""Errors whose text is written for the person who runs the pipeline."""


class PipelineError(Exception):
    """Nothing can be done until the person who runs the pipeline changes something: exit 2."""


class BusyError(PipelineError):
    """Another process works on these tables; a service tries again later."""


class JobError(Exception):
    """Spark or an object store gave up; what was committed before it stays: exit 1."""

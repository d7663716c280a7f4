"""A measurement that could not be taken."""


class MeasurementError(Exception):
    """The text goes into the report."""

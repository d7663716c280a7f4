"""The one line, out of Spark's page, that says what happened."""

_CAUSED_BY = "Caused by: "
_CALLING = "An error occurred while calling"


def cause(page: str) -> str:
    """Return the innermost cause that the text of an error of PySpark or Py4J names."""
    lines = [line.strip() for line in page.splitlines()]
    said = [line for line in lines if line and not line.startswith(("at ", "..."))]
    if not said:
        return "Spark gave no reason"
    caused = [line for line in said if line.startswith(_CAUSED_BY)]
    if caused:
        return caused[-1].removeprefix(_CAUSED_BY)
    if any(line.startswith("Traceback") for line in said):  # a task's Python ends with the error
        return said[-1]
    if not said[0].startswith(_CALLING):
        return said[0]
    return said[1].removeprefix(": ") if len(said) > 1 else "Spark's Java process ended"

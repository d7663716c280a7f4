import pytest

from pipeline.operation.spark_errors import cause

PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "bronze.py", line 50, in _rows
    with (landing / name).open("rb") as file:
         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
FileNotFoundError: [Errno 2] No such file or directory: 'a.jsonl'
"""
JAVA = """An error occurred while calling o145.parquet.
: org.apache.spark.SparkException: Job aborted: Mkdirs failed
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:774)
\t... 10 more
"""
CAUSED = f"""{JAVA}Caused by: java.lang.RuntimeException: outer
\tat a.b.C(D.java:1)
Caused by: java.io.IOException: No space left on device
\tat a.b.C(D.java:2)
\t... 3 more
"""
PAGES = [
    (PYTHON, "FileNotFoundError: [Errno 2] No such file or directory: 'a.jsonl'"),
    (JAVA, "org.apache.spark.SparkException: Job aborted: Mkdirs failed"),
    (CAUSED, "java.io.IOException: No space left on device"),
    ("An error occurred while calling o220.write", "Spark's Java process ended"),
    (
        "[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03",
        "[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03",
    ),
    ("", "Spark gave no reason"),
]


@pytest.mark.parametrize(("page", "line"), PAGES, ids=range(len(PAGES)))
def test_the_innermost_cause_is_told(page: str, line: str) -> None:
    assert cause(page) == line

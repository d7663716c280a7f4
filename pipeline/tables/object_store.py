"""A place in an S3 store, and how a file of the disk gets there.

Where the store is and who may write to it comes from the variables that AWS's own tools read.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.fs import S3FileSystem

from pipeline.errors import JobError, PipelineError

_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]+)((?:/[^/]+)*)/*")
_SAID = re.compile("<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", re.DOTALL)
_CAUSED_BY = "↳"
_CHUNK = 8 * 1024 * 1024
_RETRIES = {"max_retries": "5"}
"""So that a store that is away is reported within seconds; ten can take minutes."""


class LocalFile(NamedTuple):
    """A file of the disk as it was listed."""

    path: Path
    size: int
    mtime_ns: int


class ReplacedError(Exception):
    """A file is gone, or is another one than was listed."""


@dataclass(frozen=True)
class Store:
    """A bucket and a prefix in it."""

    url: str
    options: dict[str, str]
    """For deltalake."""
    files: S3FileSystem

    def table_url(self, name: str) -> str:
        """Return the address of a table."""
        return f"{self.url}/{name}"

    def table(self, name: str) -> DeltaTable | None:
        """Return a Delta table; None if there is none of this name."""
        try:
            return DeltaTable(self.table_url(name), storage_options=self.options)
        except TableNotFoundError:
            return None

    def put(self, file: LocalFile, key: str) -> None:
        """Copy a file, unless an object of this key and size is there.

        What an interruption leaves is no object, or one of another size, which is replaced.
        Raises ReplacedError if the file is not the one that was listed.
        """
        place = self.table_url(key).removeprefix("s3://")
        try:
            with file.path.open("rb") as source:
                found = os.fstat(source.fileno())
                if (found.st_size, found.st_mtime_ns) != (file.size, file.mtime_ns):
                    raise ReplacedError(str(file.path))
                if self.files.get_file_info(place).size != file.size:
                    with self.files.open_output_stream(place) as target:
                        shutil.copyfileobj(source, target, _CHUNK)
        except FileNotFoundError as error:
            raise ReplacedError(str(file.path)) from error


def open_store(url: str) -> Store:
    """Return the place that a URL names; raises PipelineError if it names none."""
    found = _URL.fullmatch(url)
    if found is None:
        raise PipelineError(f"{url} is not s3://BUCKET or s3://BUCKET/PREFIX")
    variables = os.environ
    endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
    region = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    if endpoint and not region:
        region = "us-east-1"  # which servers other than AWS's take, or do not ask for
    options = {"region": region, "endpoint_url": endpoint}
    if endpoint and endpoint.startswith("http:"):
        options["allow_http"] = "true"
    return Store(
        f"s3://{found[1]}{found[2]}",
        _RETRIES | {name: value for name, value in options.items() if value},
        S3FileSystem(endpoint_override=endpoint, region=region, allow_delayed_open=True),
    )


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Raise JobError, in one line, for what the store answers, or if it does not answer."""
    try:
        yield
    except (OSError, DeltaError) as error:
        raise JobError(f"cannot write to {url}: {_reason(str(error))}") from error


def _reason(page: str) -> str:
    """Return what a store said, or else the innermost cause."""
    said = _SAID.search(page)
    if said is not None:
        return f"{said[2]} ({said[1]})"
    return page.rpartition(_CAUSED_BY)[2].strip()

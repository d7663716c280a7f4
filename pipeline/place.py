"""A folder, or a place in an object store: one way to list, read and put files in either."""

import io
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from pipeline.errors import JobError, PipelineError

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileSystem

URLS = "s3://BUCKET/…, gs://BUCKET/… or abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/…"
_STORES = re.compile(
    r"s3://[a-z0-9][a-z0-9.-]+(/[^/]+)*"
    r"|gs://[a-z0-9][a-z0-9._-]+(/[^/]+)*"
    r"|abfss://[a-z0-9-]+@[a-z0-9]+\.[a-z0-9.]+(/[^/]+)*"
)
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/")
_SAID = re.compile("<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", re.DOTALL)
_CAUSED_BY = "↳"
_READ_AHEAD = 1024 * 1024
"""Bytes of a file that one request gets."""
_RETRIES = {"max_retries": "5"}
"""Of deltalake: a store that is away is reported within seconds; ten can take minutes."""
_PAUSES = (0.1, 0.5, 2.0)
"""Seconds before a part of a file is asked for again: Arrow's client gives up where the answer of a
store that throttles is longer than the part."""
_ATTEMPTS = 8
"""Tries of a request that a store throttles, or does not answer: half a minute at most."""


class Found(NamedTuple):
    """A file as it was listed; `name` is its path below the place, with `/`."""

    name: str
    size: int
    mtime_ns: int


class _StoreFile(io.RawIOBase):
    """A file of a store whose failures are JobErrors."""

    def __init__(self, file: "NativeFile", url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        with store_errors(f"cannot read {self._url}"):
            for pause in _PAUSES:
                try:
                    return int(self._file.readinto(into))
                except OSError:
                    time.sleep(pause)
            return int(self._file.readinto(into))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()
        super().close()


@dataclass(frozen=True)
class Place:
    """A folder, or a place in a store; Spark's tasks get it by its name."""

    name: str
    """An absolute path, or a URL of s3, abfss or gs, without `/` at its end."""

    def __str__(self) -> str:
        return self.name

    def __truediv__(self, below: str) -> "Place":
        return Place(f"{self.name}/{below}")

    @property
    def folder(self) -> Path | None:
        """The folder; None for a place in a store."""
        return None if _URL.match(self.name) else Path(self.name)

    @property
    def url(self) -> str:
        """The URL, of a folder too."""
        return self.name if self.folder is None else self.folder.as_uri()

    @property
    def base(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def parent(self) -> "Place":
        """What the place lies in."""
        return Place(self.name.rpartition("/")[0] or "/")

    @property
    def files(self) -> "FileSystem":
        """Arrow's file system, of which `path` returns paths."""
        store = "" if self.folder is not None else "/".join(self.name.split("/", 3)[:3])
        return _file_system(store, tuple(self.options.items()))

    def path(self, name: str = "") -> str:
        """Return the path of a file below the place, or its own."""
        scheme, _, rest = self.name.partition("://")
        if scheme == "abfss":
            account = rest.partition("/")[0]
            rest = account.partition("@")[0] + rest.removeprefix(account)
        return "/".join(filter(None, (rest or self.name, name)))

    def exists(self) -> bool:
        """Say whether the folder is there, or the store's bucket or container."""
        if self.folder is not None:
            return self.folder.exists()
        from pyarrow.fs import FileType

        with store_errors(f"cannot reach {self}"):
            found = self.files.get_file_info(self.path().partition("/")[0])
        return bool(found.type != FileType.NotFound)

    def open(self, name: str) -> BinaryIO:
        """Open a file below the place for reading; raises FileNotFoundError if there is none.

        Raises JobError if a store fails, then and later, so nobody takes that for a damaged file.
        """
        if self.folder is not None:
            return (self.folder / name).open("rb")
        with store_errors(f"cannot read {self}/{name}"):
            file = self.files.open_input_file(self.path(name))
        return io.BufferedReader(_StoreFile(file, f"{self}/{name}"), _READ_AHEAD)

    def create(self, name: str, content: bytes | memoryview) -> None:
        """Put a file that no reader sees before it is whole; one of a folder is on its disk then.

        In a folder nothing is replaced: it raises FileExistsError. Raises OSError if it cannot be
        put, of a store in one line.
        """
        if self.folder is not None:
            _create(self.folder / name, content)
            return
        try:
            with self.files.open_output_stream(self.path(name)) as stream:
                stream.write(content)
        except OSError as error:
            raise OSError(_reason(str(error))) from error

    def listed(self, *, recursive: bool = False) -> tuple[list[Found], list[str]]:
        """Return the files of a place in a store, as far as they have bytes, and the folders.

        Azure shows a file of no bytes while it is written.
        """
        from pyarrow.fs import FileSelector

        root = self.path()
        below = FileSelector(root, allow_not_found=True, recursive=recursive)
        with store_errors(f"cannot list {self}"):
            listed = self.files.get_file_info(below)
        files = [
            Found(each.path.removeprefix(f"{root}/"), each.size, each.mtime_ns)
            for each in listed
            if each.is_file and each.size
        ]
        return files, sorted(each.base_name for each in listed if not each.is_file)

    @property
    def options(self) -> dict[str, str]:
        """What tells deltalake of the store, beside the environment."""
        return _RETRIES | _store_options(self.name.partition(":")[0], os.environ)


def place_of(where: "str | Path | Place") -> Place:
    """Return the place that a path or a URL names; raises PipelineError for another URL."""
    if isinstance(where, Place):
        return where
    text = str(where)
    if not _URL.match(text):
        return Place(str(Path(where).absolute()))
    if _STORES.fullmatch(text.rstrip("/")) is None:
        raise PipelineError(f"{text} is not {URLS}")
    return Place(text.rstrip("/"))


@contextmanager
def store_errors(what: str) -> Iterator[None]:
    """Raise JobError, `what` and why in one line, for what a store answers, or if it does not.

    That a file is not there is a FileNotFoundError as anywhere.
    """
    from deltalake.exceptions import DeltaError

    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, DeltaError) as error:
        raise JobError(f"{what}: {_reason(str(error))}") from error


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _create(path: Path, content: bytes | memoryview) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    sync(path.parent.parent)
    temporary = path.parent / f".{path.name}-{secrets.token_hex(4)}.tmp"
    try:
        temporary.write_bytes(content)
        sync(temporary)
        os.link(temporary, path)  # unlike a rename it replaces nothing
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _reason(page: str) -> str:
    """Return what a store said, or else the innermost cause."""
    said = _SAID.search(page)
    if said is not None:
        return f"{said[2]} ({said[1]})"
    return page.rpartition(_CAUSED_BY)[2].strip()


def _store_options(scheme: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return where a store is that is not AWS's or Azure's own, in deltalake's words."""
    options: dict[str, str | None] = {}
    if scheme == "s3":
        endpoint = variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL")
        region = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
        if endpoint and not region:
            region = "us-east-1"  # which servers other than AWS's take, or do not ask for
        options = {"region": region, "endpoint_url": endpoint}
    elif scheme == "abfss":
        endpoint = variables.get("AZURE_STORAGE_ENDPOINT")
    else:
        endpoint = None
    if endpoint and endpoint.startswith("http:"):
        options["allow_http"] = "true"
    return {name: value for name, value in options.items() if value}


@cache
def _file_system(store: str, options: tuple[tuple[str, str], ...]) -> "FileSystem":
    """Return Arrow's file system of a store, the machine's own for none."""
    from pyarrow import fs

    if not store:
        return fs.LocalFileSystem()
    scheme, _, host = store.partition("://")
    if scheme == "s3":
        return fs.S3FileSystem(
            endpoint_override=dict(options).get("endpoint_url"),
            region=dict(options).get("region"),
            allow_delayed_open=True,  # a small file is one request
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )
    if scheme == "gs":
        return fs.GcsFileSystem()
    return _azure(host.partition("@")[2], os.environ)


def _azure(host: str, variables: Mapping[str, str]) -> "FileSystem":
    """Return the file system of an Azure account, by the variables that deltalake reads too."""
    from pyarrow.fs import AzureFileSystem

    endpoint = variables.get("AZURE_STORAGE_ENDPOINT", "")
    scheme, _, rest = endpoint.partition("://")
    where: dict[str, str] = {}
    if endpoint:
        authority = rest.partition("/")[0]
        for kind in ("blob", "dfs"):
            where |= {f"{kind}_storage_authority": authority, f"{kind}_storage_scheme": scheme}
    key = variables.get("AZURE_STORAGE_ACCOUNT_KEY")
    token = None if key else variables.get("AZURE_STORAGE_SAS_TOKEN")
    return AzureFileSystem(host.partition(".")[0], account_key=key, sas_token=token, **where)

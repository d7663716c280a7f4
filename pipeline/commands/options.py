"""Options that several commands have, and the settings that they give."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import PipelineError
from pipeline.place import Place, place_of
from pipeline.settings import (
    BATCH_BYTES,
    BATCH_FILES,
    BATCH_ROWS,
    LANDING,
    MASTER,
    MASTER_VARIABLE,
    TABLES,
    BatchSize,
    Settings,
    make_settings,
    user_cache,
)

if TYPE_CHECKING:
    from pipeline.collect.broker import Broker
    from pipeline.operation.once import How

NO_CACHE = "none"
"""The word for no cache."""


def add_landing(parser: Any) -> None:
    """Add `--landing`."""
    parser.add_argument(
        "--landing",
        type=_place,
        default=place_of(LANDING),
        metavar="DIR|URL",
        help=f"default: {LANDING}",
    )


def _place(text: str) -> Place:
    try:
        return place_of(text)
    except PipelineError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_tables(parser: Any) -> None:
    """Add `--tables`."""
    parser.add_argument(
        "--tables",
        type=_place,
        default=place_of(TABLES),
        metavar="DIR|URL",
        help=f"default: {TABLES}",
    )


def add_spark(parser: Any) -> None:
    """Add `--master` and `--java-cache`."""
    parser.add_argument(
        "--master",
        metavar="URL",
        help=f"Spark master; default: ${MASTER_VARIABLE}, else {MASTER}",
    )
    parser.add_argument(
        "--java-cache",
        type=_cache,
        default=user_cache(),
        metavar="DIR",
        help="folder of archives by which Spark starts faster, about 130 MB, or none; "
        "default: %(default)s",
    )


def _cache(text: str) -> Path | None:
    """Return the folder that a text names, None for `none`."""
    return None if text == NO_CACHE else Path(text)


def add_sizes(parser: Any) -> None:
    """Add how large a batch may be."""
    for name, default in (("bytes", BATCH_BYTES), ("files", BATCH_FILES), ("rows", BATCH_ROWS)):
        parser.add_argument(
            f"--batch-{name}",
            type=int,
            default=default,
            metavar=name.upper(),
            help=f"{name} of a batch of landing files, at most; default: %(default)s",
        )


def add_gold(parser: Any) -> None:
    """Add how payloads are read, and what the gold tables are made with."""
    readings = "TOML file of payloads that are readings, and of expectations"
    parser.add_argument("--readings", type=Path, metavar="FILE", help=readings)
    parser.add_argument("--no-gold", action="store_true", help="do not update the gold tables")
    names = "TOML file of names, places and time zones"
    parser.add_argument("--assets", type=Path, metavar="FILE", help=names)
    queries = "folder of queries over silver, TABLE.sql, for more gold tables"
    parser.add_argument("--gold-sql", type=Path, metavar="DIR", help=queries)


def add_followers(parser: Any) -> None:
    """Add what others learn of each run."""
    feed = "turn on the change data feed of the tables"
    parser.add_argument("--change-feed", action="store_true", help=feed)
    text = "server or file that gets the events of OpenLineage of each run"
    parser.add_argument("--openlineage", metavar="URL|FILE", help=text)


def how_of(options: argparse.Namespace) -> "How":
    """Return how a run is done by the options of `add_gold`, with the content of their files."""
    from pipeline.operation.once import make_how

    return make_how(
        gold=not options.no_gold,
        readings=options.readings,
        assets=options.assets,
        gold_sql=options.gold_sql,
        change_feed=vars(options).get("change_feed", False),
        openlineage=vars(options).get("openlineage"),
    )


def add_broker(parser: Any, *, required: bool = False) -> None:
    """Add where the fleet's broker is, and who we are there."""
    address = "mqtt://HOST[:PORT] or mqtts://HOST[:PORT]"
    parser.add_argument("--broker", required=required, metavar="URL", help=address)
    parser.add_argument(
        "--prefix", default="tidegate", help="first levels of the topics; default: %(default)s"
    )
    parser.add_argument("--username", metavar="NAME", help="user name")
    parser.add_argument(
        "--password-file",
        type=Path,
        metavar="FILE",
        help="file with the password in its first line",
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", help="file of trusted authorities; default: the system's"
    )


def broker_of(options: argparse.Namespace) -> "Broker":
    """Return the broker that the options of `add_broker` name."""
    from pipeline.collect.broker import Broker, check_broker

    check_broker(options.broker)
    file = options.password_file
    password = None if file is None else file.read_text(encoding="utf-8").partition("\n")[0]
    return Broker(options.broker, options.prefix, options.username, password, options.ca_file)


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings that the options of any command and the configuration file give."""
    given = vars(options)
    return make_settings(
        given.get("landing", LANDING),
        options.tables,
        given.get("master"),
        BatchSize(
            given.get("batch_bytes", BATCH_BYTES),
            given.get("batch_files", BATCH_FILES),
            given.get("batch_rows", BATCH_ROWS),
        ),
        options.spark,
        given.get("java_cache"),
    )


def existing(options: argparse.Namespace) -> Settings:
    """Return the settings; raises PipelineError if there are no tables."""
    settings = settings_of(options)
    if not _is_there(settings.tables):
        raise PipelineError(f"there are no tables in {settings.tables}")
    return settings


def _is_there(tables: Place) -> bool:
    if tables.folder is not None:
        return tables.folder.is_dir()
    from pipeline.tables import delta

    return bool(delta.tables_in(tables))


def with_landing(options: argparse.Namespace) -> Settings:
    """Return the settings; raises PipelineError if there is no landing folder.

    A name that is mistyped, or a disk that is not mounted, would look like nothing new.
    """
    settings = settings_of(options)
    if not settings.landing.exists():
        raise PipelineError(f"there is no landing folder {settings.landing}; --landing names it")
    return settings


def days(text: str) -> int:
    """Return the days of a text such as 400d, for argparse."""
    found = re.fullmatch("([1-9][0-9]{0,5})d", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days such as 400d")
    return int(found[1])

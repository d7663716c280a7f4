"""The events of OpenLineage that tell what a run reads and writes."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    schema_dataset,
)

from pipeline.place import Place
from pipeline.tables import delta

JOB = "tidegate-pipeline"
"""The job is named after this and the folder of the tables."""
NAMESPACE = "tidegate"
NAMESPACE_VARIABLE = "OPENLINEAGE_NAMESPACE"
"""A variable that programs with OpenLineage have."""


def run_event(
    state: str, run: str, root: Place, inputs: list[InputDataset], outputs: list[OutputDataset],
    error: BaseException | None,
) -> RunEvent:  # fmt: skip
    """Return the event of a run of this id on the tables below `root`, that is now in a state."""
    kind = job_type_job.JobTypeJobFacet("BATCH", "TIDEGATE", "JOB", producer=_producer())
    namespace = os.environ.get(NAMESPACE_VARIABLE) or NAMESPACE
    facets: dict[str, Any] = {}
    if error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            str(error) or type(error).__name__, "PYTHON", producer=_producer()
        )
    return RunEvent(
        eventType=RunState(state),
        eventTime=datetime.now(UTC).isoformat(),
        run=Run(run, facets),
        job=Job(namespace, f"{JOB}.{root.base}", {"jobType": kind}),
        inputs=inputs,
        outputs=outputs,
        producer=_producer(),
    )


def landing_dataset(landing: Place, files: int | None) -> InputDataset:
    """Return the landing files, with how many of them were read if that is known."""
    facets: dict[str, Any] = {}
    if files is not None:
        facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            fileCount=files, producer=_producer()
        )
    return InputDataset(*dataset_name(landing), inputFacets=facets)


def dataset_name(place: Place) -> tuple[str, str]:
    """Return what OpenLineage calls a place: `file` and its path, or the bucket and the rest."""
    if place.folder is not None:
        return "file", str(place.folder)
    scheme, _, rest = place.name.partition("://")
    bucket, _, path = rest.partition("/")
    return f"{scheme}://{bucket}", path or "/"


def versions(root: Place) -> dict[str, int]:
    """Return the versions of the tables below `root`, by their names."""
    return {name: delta.opened(root / name).version() for name in delta.tables_in(root)}


def written(root: Place, before: Mapping[str, int]) -> Iterator[OutputDataset]:
    """Yield the tables that have another version than before, with what that added."""
    for name, now in versions(root).items():
        if now != before.get(name):
            yield _output(root / name, now, before.get(name))


def _output(place: Place, now: int, before: int | None) -> OutputDataset:
    table, old = delta.opened(place), set[str]()
    if before is not None:
        table.load_as_version(before)
        old = {each["path"] for each in delta.shown(table)}
    table.load_as_version(now)
    new = [each for each in delta.shown(table) if each["path"] not in old]
    fields = [
        schema_dataset.SchemaDatasetFacetFields(each.name, type=type_name(each.type))
        for each in table.schema().fields
    ]
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        sum(each["num_records"] for each in new),
        sum(each["size_bytes"] for each in new),
        len(new),
        producer=_producer(),
    )
    facets = {
        "schema": schema_dataset.SchemaDatasetFacet(fields, producer=_producer()),
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            str(now), producer=_producer()
        ),
    }
    return OutputDataset(
        *dataset_name(place),
        facets=facets,
        outputFacets={"outputStatistics": statistics},
    )


def type_name(kind: Any) -> str:
    """Return the name of a Delta type; of a nested one with its parts."""
    if hasattr(kind, "element_type"):
        return f"array<{type_name(kind.element_type)}>"
    if hasattr(kind, "value_type"):
        return f"map<{type_name(kind.key_type)},{type_name(kind.value_type)}>"
    if hasattr(kind, "fields"):
        return f"struct<{','.join(f'{each.name}:{type_name(each.type)}' for each in kind.fields)}>"
    return str(kind.type)


def _producer() -> str:
    return f"urn:tidegate:pipeline:{version('tidegate')}"

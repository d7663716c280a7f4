"""Starts the Python processes of Spark's tasks, as forks of one that has imported what they need.

Spark's own program imports it in each of them, from sources in a zip file whose index it reads over
and over. After each task it has the garbage collector look at all modules.
"""

import gc
import importlib
import sys

IMPORTED = ("pandas", "pyspark.worker", "pipeline.batches.run_batch", "pipeline.gold.tasks")
"""Modules that are in memory before the first fork, with all that they import."""


def _serve() -> None:
    sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]
    sys.path_importer_cache.clear()  # so that Spark is found where it is installed, and compiled
    for name in IMPORTED:
        importlib.import_module(name)
    from pyspark import daemon

    gc.collect()
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    _serve()

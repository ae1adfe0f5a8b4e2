"""A driver of Spark for tests: two executors on this machine, one of which is killed during the job.

It takes a folder of captures, one to write to, and the size up to which a capture is read whole, and prints what it saw as JSON.
One job reads small captures whole and larger ones in lines, because each job takes half a minute of processor time.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from mcpspy.columns.recipes import RECIPES
from mcpspy.columns.schema import TABLES
from mcpspy.spark import write_columns

EXECUTOR = "CoarseGrainedExecutorBackend"
DATE = "2026-11-21"
DONE_TASKS = 5
"""So many tasks are done when an executor is killed."""

SMALL_SPLITS = {"spark.sql.files.maxPartitionBytes": "30000", "spark.sql.files.openCostInBytes": "4096"}
"""A task has one capture or a few, and a large capture is cut into several parts."""


SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The optimizing compiler of a JVM takes longer than a short job saves by it."""


def main(captures: str, folder: str, whole_bytes: str) -> None:
    """Run the job and the recipes."""
    spark = session(Path(folder))
    try:
        with Killer(spark) as killer:
            write_columns(spark, captures, f"{folder}/written", whole_bytes=int(whole_bytes))
        sys.stdout.write(
            json.dumps({"killed": killer.killed, "after": list(executors(spark)), "recipes": recipes(spark, folder)})
        )
    finally:
        spark.stop()


def session(folder: Path) -> SparkSession:
    """Start Spark."""
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("mcpspy")
    settings = SMALL_SPLITS | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT_LIFE,
        "spark.driver.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIFE,
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


def executors(spark: SparkSession) -> Iterator[int]:
    """Yield the process ids of the executors, which are children of the driver's JVM."""
    for child in spark.sparkContext._jvm.java.lang.ProcessHandle.current().children().toArray():
        if EXECUTOR in child.info().commandLine().orElse(""):
            yield child.pid()


class Killer:
    """A thread that kills an executor when some tasks of a job are done. `killed` is its process id."""

    def __init__(self, spark: SparkSession) -> None:
        self.killed: int | None = None
        self._spark = spark
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._kill)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _kill(self) -> None:
        while not self._is_over.is_set():
            if self._done() >= DONE_TASKS:
                pid = next(executors(self._spark))
                os.kill(pid, signal.SIGKILL)
                self.killed = pid
                return
            time.sleep(0.01)

    def _done(self) -> int:
        tracker = self._spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def recipes(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Return the answer to each recipe: its columns and rows, times as text."""
    for table in TABLES:
        spark.read.parquet(f"{folder}/written/{table}").createOrReplaceTempView(table)
    answers = {}
    for name, recipe in RECIPES.items():
        rows = spark.sql(recipe.sql.replace("{date}", DATE))
        answers[name] = [[plain(value) for value in row] for row in rows.collect()]
    return answers


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else float(value)


if __name__ == "__main__":
    main(*sys.argv[1:])

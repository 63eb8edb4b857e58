"""How long does it take to load each task's data from a warm file cache?

Run ``uv run python -m studies.loading``. It prints the median and the range in seconds, after a first time that is not counted. The
answer is in docs/performance.md, *Loading data*.
"""

import importlib
import time

import click

from rosetta import catalog, data
from rosetta.cli import count, where
from rosetta.figures import Sample, spread
from rosetta.where import Where


@click.command()
@where("data_dir")
@count("--repeats", "How often.", default=5)
def main(where: Where, repeats: int) -> None:
    for name in dict.fromkeys(task.data for task in catalog.load().tasks.values() if task.data):
        module, folder, took = importlib.import_module(f"common.data.{name}"), data.locate(name, where.data_dir), []
        for _ in range(1 + repeats):
            started = time.perf_counter()
            module.load(data_dir=folder)
            took.append(time.perf_counter() - started)
        print(f"{name:<12} {spread(Sample(tuple(took[1:])), 3)} s", flush=True)


if __name__ == "__main__":
    main()

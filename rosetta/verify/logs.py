"""What a row's runs print, kept below the results while a proof that failed asks for it: a run's own folder goes with the run."""

from contextlib import suppress
from pathlib import Path

from rosetta.catalog import Row
from rosetta.run.kernels import Kernel, Kernels


class LoggingKernels(Kernels):
    """Kernels whose runs all write to one log, which outlives them. Without it, where it cannot be written."""

    def __init__(self, kernels: Kernels, log: Path):
        super().__init__(kernels.interpreters, kernels.builds)
        self.log = log
        with suppress(OSError):
            log.unlink(missing_ok=True)

    def get(self, row: Row, log: Path, *arguments, **options) -> Kernel:
        with suppress(OSError):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.touch()
            log.symlink_to(self.log.absolute())
        return super().get(row, log, *arguments, **options)


def path(results: Path, row: Row) -> Path:
    return results / "conformance" / f"{row.task}.{row.stem}.log"

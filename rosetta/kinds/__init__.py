"""The kinds of task. A task names its kind in ``task.toml``; a kind says what its tasks, notebooks and records must have.

How a kind is proven stands in ``rosetta/verify/<kind>.py``.
"""

from rosetta.kinds.entries import Entries
from rosetta.kinds.infer import Infer
from rosetta.kinds.kind import Kind
from rosetta.kinds.speed import Speed
from rosetta.kinds.train import Train

KINDS: dict[str, Kind] = {kind.name: kind for kind in (Train(), Infer(), Speed(), Entries())}

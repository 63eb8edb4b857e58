"""The table of the networks on the page of their task says what their lists of layers come to."""

import re

from common.params import networks
from common.reference import networks as reference
from rosetta import tasks

PAGE = (tasks.NOTEBOOKS / "networks" / "README.md").read_text(encoding="utf-8")


def test_counts_are_those_of_the_lists():
    lines = re.findall(r"^\| `(\w+)` \| .* \| ([\d,]+) \| ([\d,.]+) \| [^|]+ \|$", PAGE, re.MULTILINE)
    expected = [
        (name, f"{network.PARAMETERS:,}", f"{network.MULTIPLY_ADDS / 1e6:,.1f}")
        for name, network in ((name, networks.network(name)) for name in networks.NETWORKS)
    ]
    assert lines == expected


def test_flavours_are_those_of_the_reference():
    lines = re.findall(r"^\| `([\w ]+)` \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    counts = {flavour: reference.of(flavour).network("lstm").PARAMETERS for flavour in networks.FLAVOURS}
    assert lines == [(flavour, f"{count:,}") for flavour, count in counts.items()]

"""What PyTorch counts in the networks of its notebook: ``python multiply_adds_in_torch.py NOTEBOOK OUT.json NETWORK ...``.

Its counter sees the convolutions and matrix products that are really called, with a single example. Run it in the notebook's folder.
"""

import json
import sys

import torch
from torch.utils.flop_counter import FlopCounterMode

notebook, out, *names = sys.argv[1:]
with open(notebook, encoding="utf-8") as file:
    cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
code = {cell["metadata"]["tags"][0]: "".join(cell["source"]) for cell in cells}
space = {"__name__": "__main__"}
exec(code["parameters"], space)
exec(code["setup"], space)
counted = {}
for name in names:
    space.update(NETWORK=name, BATCHSIZE=1)
    exec(code["data"], space)
    exec(code["model"], space)
    x, _ = next(space["batches"])
    model = space["model"].eval()
    # oneDNN's LSTM is one operation that the counter does not know
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
        model(x)
    counted[name] = counter.get_total_flops() / 2
with open(out, "w", encoding="utf-8") as file:
    json.dump(counted, file)

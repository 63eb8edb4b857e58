"""tinygrad: on a GPU, kernels are searched for (BEAM in tinygrad's documentation); on a CPU the search takes too long,
and nothing is known that the notebook lacks: data on the device, and one step of the GRU recorded for all 150."""

# %% after setup
if device != "CPU":  # on which a search takes too long
    from tinygrad.helpers import BEAM

    BEAM.value = 2

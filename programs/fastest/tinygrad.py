"""tinygrad: on a GPU, kernels are searched for (BEAM in tinygrad's documentation). On a CPU the search takes too long, and nothing is
known that the notebooks lack: data on the device, recorded steps."""

# %% after setup
if device != "CPU":  # on which a search takes too long
    from tinygrad.helpers import BEAM

    BEAM.value = 2

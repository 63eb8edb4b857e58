"""CNTK: each value of a forward pass keeps memory of its own. No setting that was tried makes a step faster on a CPU: its optimized
evaluation and gradients that are not accumulated in place do not, either."""

# %% after setup
C.cntk_py.disable_forward_values_sharing()

"""CNTK: values of the forward pass are not shared."""

# %% after setup
C.cntk_py.disable_forward_values_sharing()

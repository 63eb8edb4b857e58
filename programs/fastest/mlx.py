"""MLX: every batch divided among as many streams as there are processors ("Using Streams" in MLX's documentation), as the notebook has it
as a variant."""

# %% after parameters
STREAMS = True

"""PyTorch, CUDA graphs: `torch.compile` also records each pass as a CUDA graph, which the GPU replays at one launch."""

# %% after weights
model.compile(mode="reduce-overhead", dynamic=False)

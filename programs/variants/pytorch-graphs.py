"""PyTorch, CUDA graphs: `torch.compile` also records each pass as a CUDA graph, which the GPU replays at one launch."""

# %% after weights
model.forward = torch.compile(model.forward, mode="reduce-overhead", dynamic=False)

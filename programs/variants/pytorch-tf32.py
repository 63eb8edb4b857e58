"""PyTorch, TF32: convolutions and matrix products round what they take to TF32, a shorter format of recent GPUs."""

# %% after setup
torch.backends.fp32_precision = "tf32"

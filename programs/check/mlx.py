"""MLX: one convolution."""

# %% after setup
y = mx.conv2d(mx.array(x.transpose(0, 2, 3, 1)), mx.array(w.transpose(0, 2, 3, 1)), padding=1)
tell(np.array(y).transpose(0, 3, 1, 2), device)

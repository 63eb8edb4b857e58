"""Keras on any of its backends: one convolution."""

# %% after setup
y = keras.ops.conv(
    x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), strides=1, padding="same", data_format="channels_last"
)
tell(keras.ops.convert_to_numpy(y).transpose(0, 3, 1, 2), y.device)

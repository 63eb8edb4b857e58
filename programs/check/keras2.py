"""Keras 2 on any of its backends: one convolution, with data format and kernels as that backend takes them."""

# %% after setup
first = BACKEND != "tensorflow"
K.set_image_data_format("channels_first" if first else "channels_last")
layer = Conv2D(64, 3, padding="same", use_bias=False)
network = keras.Sequential([layer])
network.build((None, 64, 32, 32) if first else (None, 32, 32, 64))
kernels = w[:, :, ::-1, ::-1] if BACKEND == "theano" else w
layer.set_weights([kernels.transpose(2, 3, 1, 0)])
y = network.predict(x if first else x.transpose(0, 2, 3, 1))
tell(y if first else y.transpose(0, 3, 1, 2), device)

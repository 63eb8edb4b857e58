"""TensorFlow: one convolution."""

# %% after setup
y = tf.nn.conv2d(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), strides=1, padding="SAME")
tell(y.numpy().transpose(0, 3, 1, 2), y.device)

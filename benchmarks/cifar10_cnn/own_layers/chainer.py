"""Chainer: on a CPU convolutions of im2col and matmul, a product of matrices for each image: its result lies in memory as
NCHW, whereas F.convolution_2d rearranges its columns for one product of the whole batch. On a GPU F.convolution_2d is cuDNN's."""


# %% after model
class Convolution2D(L.Convolution2D):
    def forward(self, x):
        n, _, height, width = x.shape
        columns = F.im2col(x, self.ksize, self.stride, self.pad).reshape(n, -1, height * width)
        W = self.W.reshape(self.out_channels, -1)
        y = F.matmul(F.broadcast_to(W, (n, *W.shape)), columns)
        return F.bias(y, self.b).reshape(n, self.out_channels, height, width)  # as large as x: 3x3, padded by 1


if device.xp is np:
    glorot = chainer.initializers.GlorotUniform()
    for name in ("conv1", "conv2", "conv3", "conv4"):
        delattr(net, name)
    with net.init_scope():
        net.conv1 = Convolution2D(3, 50, ksize=3, pad=1, initialW=glorot)
        net.conv2 = Convolution2D(50, 50, ksize=3, pad=1, initialW=glorot)
        net.conv3 = Convolution2D(50, 100, ksize=3, pad=1, initialW=glorot)
        net.conv4 = Convolution2D(100, 100, ksize=3, pad=1, initialW=glorot)

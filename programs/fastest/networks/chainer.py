"""Chainer: on a CPU a convolution is a matrix product for each image, whose columns and result stay where they lie in memory. L.Convolution2D
transposes the columns of all images first. A convolution of 1x1 needs no columns. On a GPU cuDNN convolves."""


# %% after setup
class InPlace(L.Convolution2D):
    def forward(self, x):
        (out, _, *size), (rows, columns) = self.W.shape, self.stride
        if size != [1, 1]:
            x = F.im2col(x, size, self.stride, self.pad)
        elif self.stride != (1, 1):
            x = x[:, :, ::rows, ::columns]
        n, _, *shape = x.shape
        kernel = F.broadcast_to(self.W.reshape(1, out, -1), (n, out, self.W.size // out))
        y = F.matmul(kernel, x.reshape(n, self.W.size // out, -1)).reshape(n, out, *shape)
        return y if self.b is None else F.bias(y, self.b)


if not gpu:
    L.Convolution2D = InPlace

"""Lasagne on Theano: the phases of a training step, each a compiled function of shared variables."""

# %% after optimizer
placed_x, placed_y = theano.shared(x_train[:1]), theano.shared(y_train[:1])  # on the GPU where there is one
placed = {images: placed_x, labels: placed_y}
gradients = [theano.shared(w.get_value()) for w in params]  # a place for them: Theano leaves out what nothing uses

forward_step = theano.function([], loss, givens=placed)
backward_step = theano.function([], loss, givens=placed, updates=list(zip(gradients, theano.grad(loss, params))))
whole_step = theano.function([], loss, givens=placed, updates=updates)


def place(n):
    placed_x.set_value(x_train[:n])
    placed_y.set_value(y_train[:n])
    return placed_x, placed_y


def forward(x, y):
    return forward_step()


def backward(x, y):
    return backward_step()


def step(x, y):
    return whole_step()


def value(loss):
    return float(loss)

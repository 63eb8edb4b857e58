"""The gated recurrent unit (GRU) in plain NumPy with its derivative: what the references of recurrent networks are made of.

Gates stand below each other in matrices and biases: r (reset), z (update), n (candidate). h' = (1 - z) n + z h. n: of the batch too.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, weight_ih, weight_hh, bias_ih, bias_hh, reset_after):
    """The state after every step: (n, steps, in) -> (steps + 1, n, hidden), of which the first is zero; and the gates of each step.

    weight_ih: (3 hidden, in); weight_hh: (3 hidden, hidden); bias_ih, bias_hh: (3 hidden,).
    reset_after: n = tanh(W x + b + r (U h + c)); else n = tanh(W x + b + U (r h) + c).
    """
    n, steps, _ = x.shape
    hidden = weight_hh.shape[1]
    inputs = np.matmul(x, weight_ih.T) + bias_ih
    states, gates = np.zeros((steps + 1, n, hidden), x.dtype), []
    for t in range(steps):
        h, a = states[t], inputs[:, t]
        u = np.matmul(h, weight_hh[: 2 * hidden].T) + bias_hh[: 2 * hidden]
        r, z = np.split(sigmoid(a[:, : 2 * hidden] + u), 2, axis=1)
        before = h if reset_after else r * h
        c = np.matmul(before, weight_hh[2 * hidden :].T) + bias_hh[2 * hidden :]
        candidate = np.tanh(a[:, 2 * hidden :] + (r * c if reset_after else c))
        states[t + 1] = (1 - z) * candidate + z * h
        gates.append((r, z, candidate, c))
    return states, gates


def gru_gradient(d, x, states, gates, weight_ih, weight_hh, reset_after):
    """Gradients by x, weight_ih, weight_hh, bias_ih and bias_hh. d: by the last state, (n, hidden)."""
    n, steps, _ = x.shape
    hidden = weight_hh.shape[1]
    to_gates, to_candidate = weight_hh[: 2 * hidden], weight_hh[2 * hidden :]
    d_inputs = np.empty((steps, n, 3 * hidden), x.dtype)  # by W x + b
    d_weight, d_bias = np.zeros_like(weight_hh), np.zeros(3 * hidden, x.dtype)
    for t in reversed(range(steps)):
        h, (r, z, candidate, c) = states[t], gates[t]
        d_n = d * (1 - z) * (1 - candidate**2)
        d_z = d * (h - candidate) * z * (1 - z)
        d_c = d_n * r if reset_after else d_n
        d_before = np.matmul(d_c, to_candidate)
        d_r = (d_n * c if reset_after else d_before * h) * r * (1 - r)
        d_rz = np.concatenate([d_r, d_z], axis=1)
        d_inputs[t] = np.concatenate([d_rz, d_n], axis=1)
        d_weight[: 2 * hidden] += np.matmul(d_rz.T, h)
        d_weight[2 * hidden :] += np.matmul(d_c.T, h if reset_after else r * h)
        d_bias += np.concatenate([d_rz, d_c], axis=1).sum(axis=0)
        d = d * z + np.matmul(d_rz, to_gates) + (d_before if reset_after else d_before * r)
    d_inputs = d_inputs.transpose(1, 0, 2)
    d_weight_ih = np.tensordot(d_inputs, x, axes=((0, 1), (0, 1)))
    return np.matmul(d_inputs, weight_ih), d_weight_ih, d_weight, d_inputs.sum(axis=(0, 1)), d_bias

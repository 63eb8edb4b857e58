"""Small answers in NumPy."""

import numpy as np

# ---- [answers] One line an entry

x = np.arange(6.0).reshape(2, 3)


def answers():
    return {"mean-of-rows": x.mean(axis=1), "largest": x.argmax(axis=1), "name": "float64"}

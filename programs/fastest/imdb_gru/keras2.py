"""Keras 2: Theano keeps its intermediate arrays (its documentation on allow_gc). Otherwise fit() stays: unrolled, the GRU takes minutes
to compile and gains nothing; XLA and the Adam of TensorFlow 1 gain nothing either, and for CNTK nothing is known."""

# %% after parameters
import os

os.environ["THEANO_FLAGS"] = ",".join(filter(None, [os.environ.get("THEANO_FLAGS"), "allow_gc=False"]))  # Theano alone

"""Lasagne: Theano keeps its intermediate arrays (its documentation on allow_gc)."""

# %% after parameters
import os

os.environ["THEANO_FLAGS"] = ",".join(filter(None, [os.environ.get("THEANO_FLAGS"), "allow_gc=False"]))

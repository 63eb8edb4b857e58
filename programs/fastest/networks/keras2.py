"""Keras 2: Theano keeps its intermediate arrays (its documentation on allow_gc); TensorFlow compiles clusters of operations with XLA; for
CNTK nothing is known."""

# %% after parameters
import os

# Each of these is read by one backend alone
os.environ["THEANO_FLAGS"] = ",".join(filter(None, [os.environ.get("THEANO_FLAGS"), "allow_gc=False"]))
os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"

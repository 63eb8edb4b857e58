"""MXNet Gluon: on a CPU the graph is cut into subgraphs for oneDNN, which folds batch norm into convolutions."""

# %% after weights
if device == mx.cpu():
    net.optimize_for(mx.nd.array(x[:BATCHSIZE]), backend="MKLDNN", static_alloc=True, static_shape=True)

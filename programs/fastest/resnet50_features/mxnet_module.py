"""MXNet Module: on a CPU the symbol is cut into subgraphs for oneDNN, which folds batch norm into convolutions."""

# %% after weights
if device == mx.cpu():
    arrays, statistics = model.get_params()
    model = mx.mod.Module(model.symbol.get_backend_symbol("MKLDNN"), label_names=None, context=device)
    model.bind(batches.provide_data, for_training=False)
    model.set_params(arrays, statistics)

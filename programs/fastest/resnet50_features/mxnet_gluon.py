"""MXNet Gluon: nothing is known that the notebook lacks. On a CPU it cuts the graph into parts for oneDNN, which folds batch norm into
convolutions."""

"""TensorFlow 1: weights frozen into the graph and batch norm folded into convolutions, as its guides to serving do."""

# %% after weights
from tensorflow.tools.graph_transforms import TransformGraph

constant = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, [features.op.name])
folded = TransformGraph(
    constant,
    [inputs.op.name],
    [features.op.name],
    ["strip_unused_nodes", "fold_constants(ignore_errors=true)", "fold_batch_norms", "fold_old_batch_norms"],
)
graph = tf.Graph()
with graph.as_default():
    inputs_of_folded, features_of_folded = tf.import_graph_def(
        folded, return_elements=[inputs.name, features.name], name=""
    )
serving = tf.Session(graph=graph)


# %% predict
def extract(batch):
    return serving.run(features_of_folded, {inputs_of_folded: batch})


def predict():
    batches = [x[i : i + BATCHSIZE] for i in range(0, len(x), BATCHSIZE)]
    return np.concatenate([extract(batch) for batch in batches])


log = PassLog()
for _ in range(2):
    log.done(predict())
log.latency(lambda: extract(x[:1]))

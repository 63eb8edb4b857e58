"""The search of every page, and the frameworks that a reader knows and wants to see."""

import gzip
import json
import re

import pytest

# What people type, and the entry that comes first; with #FRAMEWORK where an answer of that framework is meant
FIRST = {
    "zero_grad": "clear-accumulate",
    "keep probability": "dropout",
    "channels last": "layout",
    "CrossEntropyLoss keras": "cross-entropy#keras",
    "crossentropyloss": "cross-entropy",
    "detach": "stop-gradient",
    "no_grad theano": "inference#lasagne",
    "batchnorm eval mode flax": "train-eval#flax",
    "freeze layer chainer": "freeze#chainer",
    "weight tying": "share",
    "lr per layer": "rates-per-group",
    "tf.function jax": "compile#flax",
    "one hot": "one-hot",
    "gru reset gate": "gru",
    "clip grad norm": "clip-norm",
    "tensor to numpy mindspore": "numpy#mindspore",
    "autograd.record": "gradient#mxnet_gluon",
    # Others of their kinds
    "nn.Linear": "dense#pytorch",
    "BatchNormalization": "batch-norm",
    "how do I stop a gradient in mxnet": "stop-gradient#mxnet_gluon",
    "pack_padded_sequence": "variable-lengths",
    "pad_sequence keras": "pad-sequences#keras",
    "learning rate warmup": "warm-up",
    "EMA of weights": "averaged-weights",
    "gradient accumulation": "micro-batches",
    "gradient checkpointing": "rematerialise",
    "lax.scan": "loop",
    "tf.print": "debug-value",
    "resume training tensorflow 1": "resume#tensorflow1",
    "state_dict": "save-load",
    "LSTM gate order": "lstm",
    "forget bias tf1": "lstm#tensorflow1",
    "transposed convolution caffe2": "transposed-convolution#caffe2",
    "bfloat16 mlx": "mixed-precision#mlx",
    "early stopping chainer": "early-stopping#chainer",
    "padding_idx": "embedding",
    "align_corners": "resize",
    "swapaxes": "layout",
    "hessian vector product": "hvp",
    "TRAIN EVAL paddle": "train-eval#paddle",
    "adamw lasagne": "weight-decay#lasagne",
    "softmax axis": "softmax",
    "stop_gradient": "stop-gradient",
    "model.eval()": "train-eval",
    "block_until_ready": "time",
    "one-hot encoding": "one-hot",
    "weight sharing": "share",
    "transfer learning": "freeze",
    "graph mode": "compile",
    "timing": "time",
    "dropout probability somewhere": "dropout",
    # A framework alone
    "chainer": "frameworks/chainer",
    "theano": "frameworks/lasagne",
    "jax": "frameworks/flax",
    # A concept of a task, which is no entry
    "two GPUs": "concepts/densenet_parallel#several-devices",
    "multi-gpu": "concepts/densenet_parallel#several-devices",
    "data parallel": "concepts/densenet_parallel#several-devices",
    "MirroredStrategy": "concepts/densenet_parallel#several-devices",
    "several devices mxnet": "concepts/densenet_parallel#several-devices",
}

# What a reader came for: what is typed on the first page, where Enter leads, and what must stand there
JOURNEYS = {
    "dropout in CNTK": ("dropout cntk", "c/dropout.html#cntk", "C.layers.Dropout(dropout_rate=0.2)"),
    "momentum in MXNet": ("momentum mxnet", "c/sgd-momentum.html#mxnet_gluon", "momentum=0.9"),
    "how Flax saves weights": ("flax save weights", "c/save-load.html#flax", "checkpointer.save("),
    "why TensorFlow 1 has no shape to print": ("print tensorflow 1", "c/debug-value.html#tensorflow1", "tf.print"),
    "which framework starts fastest": ("fastest start", "results.html#view=start%20and%20memory", "import"),
    "no_grad in Lasagne": ("no_grad lasagne", "c/inference.html#lasagne", "deterministic"),
    "GRU of PyTorch beside Chainer's": ("gru pytorch chainer", "c/gru.html#pytorch", "L.NStepGRU"),
    "the fastest CNN on a GPU": ("fastest cnn gpu", "results/cifar10_cnn.html", "nvidia-h200, full"),
    "Keras' words in Gluon": (
        "keras gluon",
        "compare/cifar10_cnn.html#keras%5Btensorflow%5D+mxnet_gluon",
        "gluon.Trainer",
    ),
    "lesson 1 on a projector": (
        "lesson 1",
        "docs/teaching.html#lesson-1-the-same-network-in-three-styles",
        "TensorFlow 1 (2015) describes first",
    ),
}


@pytest.fixture
def home(reader):
    page = reader.open("index.html")
    page.wait_for_function("window.rosettaSearch && document.querySelector('script[src$=\"known.js\"]')")
    page.wait_for_timeout(100)
    return page


def test_what_people_type_finds_its_entry_first(home):
    found = home.evaluate("texts => texts.map((text) => (rosettaSearch.find(text)[0] || {}).href)", list(FIRST))
    got = [(href or "").removeprefix("c/").replace(".html", "") for href in found]
    wrong = {
        text: one
        for (text, first), one in zip(FIRST.items(), got)
        if one != first and ("#" in first or one.partition("#")[0] != first)
    }
    assert not wrong


@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_journey_by_the_keyboard(home, site, journey, screenshot):
    typed, href, there = JOURNEYS[journey]
    home.keyboard.type(typed)
    home.wait_for_selector("#found-0[aria-selected=true]")
    home.keyboard.press("Enter")
    home.wait_for_function("document.readyState == 'complete' && !location.href.includes('/index.html')")
    home.wait_for_timeout(300)
    assert home.url.removeprefix(f"file://{site}/").partition("/parameters")[0] == href
    assert there in home.locator("main").inner_text()
    screenshot(home)


def test_two_frameworks_lead_to_their_words_and_their_programs(home):
    found = home.evaluate("rosettaSearch.find('from PyTorch to Flax')")
    assert [one["href"] for one in found[:2]] == ["from-pytorch-to-flax.html", "compare/cifar10_cnn.html#pytorch+flax"]
    found = home.evaluate("rosettaSearch.find('flax pytorch')")
    assert found[0]["href"] == "from-flax-to-pytorch.html"


def test_first_result_is_there_in_time_and_the_index_is_small(home, site):
    spent = home.evaluate(
        "texts => { const began = performance.now(); texts.forEach((text) => rosettaSearch.find(text));"
        " return (performance.now() - began) / texts.length; }",
        list(FIRST),
    )
    assert spent < 50
    loaded = [(site / "assets" / name).read_bytes() for name in ("minisearch.js", "known.js", "search.js")]
    assert sum(len(gzip.compress(text)) for text in loaded) < 300_000


def test_by_the_keyboard_from_another_page(reader):
    page = reader.open("results.html")
    page.keyboard.press("/")
    page.keyboard.type("dropout cntk")
    page.wait_for_selector("#found-0[aria-selected=true]")
    assert "C.layers.Dropout(dropout_rate=0.2)" in page.locator("#found-0").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.locator("#search").get_attribute("aria-activedescendant") == "found-1"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/dropout.html#cntk")


def test_nothing_here_is_said(home, screenshot):
    home.locator("#search").fill("xyzzy plugh")
    home.wait_for_selector("#found .nothing")
    screenshot(home)
    home.keyboard.press("Escape")
    assert home.locator("#found").is_hidden()


def test_the_readers_frameworks_are_kept_and_come_first(reader):
    page = reader.open("index.html")
    page.get_by_label("I know").select_option("chainer")
    page.get_by_label("show me").select_option("pytorch")
    assert page.locator("[data-pair-page]").get_attribute("href") == "from-chainer-to-pytorch.html"
    page = reader.open("c/dropout.html")
    assert page.locator("section.answer").evaluate_all("all => all.slice(0, 2).map((one) => one.id)") == [
        "chainer",
        "pytorch",
    ]
    page = reader.open("compare/cifar10_cnn.html")
    page.wait_for_selector("#model article:nth-child(2)")
    assert page.locator("#heads select").evaluate_all("all => all.map((one) => one.value)") == ["chainer", "pytorch"]
    page = reader.open("c/dropout.html")
    page.get_by_label("show me").select_option("cntk")
    link = page.locator("[data-pair-page]")  # of two that have ended there is no page of words
    assert link.inner_text() == "Their programs side by side"
    link.click()
    page.wait_for_selector("#model article:nth-child(2)")
    assert page.locator("#heads select").evaluate_all("all => all.map((one) => one.value)") == ["chainer", "cntk"]
    page = reader.open("c/dropout.html#mlx")
    assert page.evaluate("document.querySelector('#mlx').getBoundingClientRect().top") < 400


def test_a_pair_has_its_words_and_fits_four_sheets(reader, tmp_path):
    page = reader.open("from-pytorch-to-cntk.html")
    row = page.locator("table.words tr", has_text="Dropout: the rate dropped")
    assert "F.dropout(" in row.inner_text() and "C.layers.Dropout(" in row.inner_text()
    assert 1 <= len(re.findall(rb"/Type /Page\b", page.pdf(format="A4"))) <= 4


def test_what_the_search_knows_is_every_entry_and_its_answers(site):
    text = (site / "assets" / "known.js").read_text()
    known = json.loads(text.removeprefix("rosettaSearch.learn(").rstrip().removesuffix(");"))
    assert len(known["entries"]) >= 80 and len(known["frameworks"]) >= 19
    empty = [
        (entry["id"], key)
        for entry in known["entries"]
        for key, answer in entry["answers"].items()
        if not answer["line"] and not answer.get("lacks")
    ]
    assert not empty, "answers without a line to show"

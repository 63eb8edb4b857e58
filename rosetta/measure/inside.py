"""What runs in a framework's own process: ``python inside.py epochs|passes|repeats|phases SCRIPT JSON``. Python 3.6.

Lines for whoever started it go to standard output and begin with MARK; what the script prints itself is in between. The first one
has the versions of the frameworks. JSON: the options, among them ``modules``, whose versions are asked for where they are loaded.
"""

import json
import os
import runpy
import sys
import time

MARK = "rosetta-measure "


def tell(facts):
    print("\n" + MARK + json.dumps(facts))
    sys.stdout.flush()


def tell_versions(modules):
    """Tell what the script has imported by now: it is about to compute."""
    from common.versions import versions

    loaded = versions(*[sys.modules[name] for name in modules if name in sys.modules])
    tell({"versions": {name: version for name, version in loaded.items() if version != "unknown"}})


def wait():
    """Wait for a line. No line any more: nobody wants the rest."""
    if not sys.stdin.readline():
        os._exit(0)


def epochs(script, options):
    """Train, but wait for one's turn before every epoch; tell each epoch's seconds and loss."""
    from common.record import EpochLog

    _by_turns(script, options, EpochLog, "epoch", lambda log, *_: {"seconds": log.epoch_s[-1], "loss": log.loss[-1]})


def _by_turns(script, options, log, note, facts):
    """Run a script, but wait when it makes its log, and after each call of the method ``note``, of which tell the facts."""
    made, noted = log.__init__, getattr(log, note)

    def start(self, *values):
        tell_versions(options["modules"])
        wait()
        made(self, *values)

    def turn(self, *values):
        noted(self, *values)
        tell(facts(self, *values))
        wait()
        self._last = time.perf_counter()

    log.__init__ = start
    setattr(log, note, turn)
    runpy.run_path(script, run_name="__main__")


def passes(script, options):
    """Run forward, but wait for one's turn before every pass; tell each pass's seconds and the mean of what it computed.

    The script has run both of its own passes then, which compile and warm up, and has left ``predict()``, which is one.
    """
    from common.passes import PassLog

    PassLog.latency = lambda log, call: None
    predict = runpy.run_path(script, run_name="__main__")["predict"]
    tell_versions(options["modules"])
    while True:
        wait()
        started = time.perf_counter()
        outputs = predict()
        tell({"seconds": time.perf_counter() - started, "mean output": float(outputs.mean())})


def repeats(script, options):
    """Run its steps, but wait for one's turn before the warm-up and every repeat; tell each one's seconds and the mean of its result."""
    from common.steps import StepLog

    def facts(log, steps, result):
        seconds = steps * log.step_s[-1] if log.step_s else log.warm_up_s
        return {"seconds": seconds, "result": float(getattr(result, "mean", lambda: result)())}

    _by_turns(script, options, StepLog, "done", facts)


def phases(script, options):
    """Time the functions that the script leaves: for each batch size, ``repeats`` times ``steps`` calls of each phase.

    The script has ``place(n)``, which returns n images and labels where the framework computes, functions of these two named as
    ``options["phases"]``, which return the loss, and ``value(loss)``, which makes a number of it when the device has finished.
    """
    left = runpy.run_path(script, run_name="__main__")
    tell_versions(options["modules"])
    for size in options["batch_sizes"]:
        batch = left["place"](size)
        for name in options["phases"]:  # compile, tune, warm up
            _timed(left, left[name], batch, options["warm_up"])
        seconds, losses = {name: [] for name in options["phases"]}, {}
        for _ in range(options["repeats"]):  # the phases by turns: a machine's mood is shared by all
            for name in options["phases"]:
                took, losses[name] = _timed(left, left[name], batch, options["steps"])
                seconds[name].append(took)
        tell({"batch_size": size, "seconds": seconds, "loss": losses})


def _timed(left, phase, batch, steps):
    """(seconds a step, the last one's loss)."""
    started = time.perf_counter()
    for _ in range(steps):
        loss = phase(*batch)
    loss = left["value"](loss)
    return (time.perf_counter() - started) / steps, float(loss)


if __name__ == "__main__":
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    todo, script, options = sys.argv[1:]
    {"epochs": epochs, "passes": passes, "repeats": repeats, "phases": phases}[todo](script, json.loads(options))

"""TensorFlow 1: make_callable saves Session.run's preparations."""

# %% after weights
made = {}


def run(fetches, *given, session_run=sess.run):
    if not isinstance(fetches, list):
        return session_run(fetches, *given)
    if id(fetches) not in made:
        made[id(fetches)] = sess.make_callable(fetches)
    return made[id(fetches)]()


sess.run = run

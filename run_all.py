"""Runs the notebooks and writes their tables: ``python3 run_all.py``, on any Python from 3.8 on. ``--help`` tells the rest.

The runner works in an environment of its own, ``.venv``. uv makes it; where the machine has no uv, it comes into ``.uv``.
"""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
UV = "uv==0.13.8"  # as in pyproject.toml
# What a shell adds to its own Python is not for the runner's
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "VIRTUAL_ENV")
TESTED = ("test", "check")  # commands that need what the tests need
STARTED = "ROSETTA_STARTED"  # by this file: what cannot be imported in that environment is an error


def do(step, failed, env):
    """Run a command; where it fails, end with one line: its error, and what to do."""
    done = subprocess.run(step, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode and "certificate" in done.stdout and "UV_SYSTEM_CERTS" not in env:
        env["UV_SYSTEM_CERTS"] = "1"  # a company's, which the system knows
        do(step, failed, env)
    elif done.returncode:
        lines = [line.strip(" ×├─▶╰│") for line in done.stdout.splitlines() if line.strip()] or ["no message"]
        errors = [number for number, line in enumerate(lines) if line.lower().startswith("error")]
        sys.exit("run_all.py: %s (%s)" % (failed, " ".join(lines[errors[0] if errors else -1 :])[:300]))


def works(uv):
    """Whether there is a uv that starts: one of pyenv's shims may lead to none."""
    try:
        return subprocess.call([uv, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def start():
    """Make what is missing, and go on in the runner's environment."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    env = {name: value for name, value in env.items() if value or not name.startswith("UV_")}  # uv refuses empty ones
    if env.get("REQUESTS_CA_BUNDLE"):  # a company's certificates, which uv takes by another name
        env.setdefault("SSL_CERT_FILE", env["REQUESTS_CA_BUNDLE"])
    uv, private = shutil.which("uv"), os.path.join(ROOT, ".uv")
    if not (uv and works(uv)):
        uv, python = (os.path.join(private, "bin", name) for name in ("uv", "python"))
        if not works(uv):
            sys.stderr.write("installing uv into .uv\n")
            make = [sys.executable, "-m", "venv", "--clear", private]
            do(make, "cannot make .uv: install python3-venv with the system's package manager, or uv", env)
            bring = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV]
            do(bring, "cannot download uv: connect to the network, or install uv", dict(env, PIP_USER="0"))
    venv = env.get("UV_PROJECT_ENVIRONMENT") or os.path.join(ROOT, ".venv")
    python = os.path.join(ROOT, venv, "bin", "python")
    if not os.path.exists(python):
        sys.stderr.write("installing the runner's packages into .venv\n")
    # This Python where it will do: uv may not find it, or take one of pyenv's shims for one
    own = ["--python", sys.executable] if sys.version_info >= (3, 11) and not os.path.exists(python) else []
    failed = "cannot install the runner's packages: connect to the network, and have Python 3.11 or newer"
    groups = [] if sys.argv[1:2] and sys.argv[1] in TESTED else ["--no-dev", "--extra", "site", "--extra", "cluster"]
    do([uv, "sync", "--project", ROOT, "--inexact"] + groups + own, failed, env)
    os.execve(python, [python, os.path.join(ROOT, "run_all.py")] + sys.argv[1:], dict(env, **{STARTED: "1"}))


if __name__ == "__main__":
    if os.name == "nt":
        sys.exit("run_all.py works on Linux and macOS; on Windows use the Windows Subsystem for Linux")
    if sys.path[0] != ROOT:  # PYTHONSAFEPATH
        sys.path.insert(0, ROOT)
    try:
        if sys.version_info < (3, 11):
            raise ImportError("the runner needs Python 3.11 or newer")
        from rosetta.cli import main
    except Exception:  # the packages may be there in versions that do not fit
        if STARTED in os.environ:
            raise
        try:
            start()
        except KeyboardInterrupt:
            sys.exit(130)
    main()

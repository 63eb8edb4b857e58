"""Runs every notebook that this machine can run and writes their tables. ``uv run run_all.py --help`` tells the rest."""

import sys

HOW = "start it as: python3 -m pip install uv && python3 -m uv run run_all.py"

if sys.version_info < (3, 11):
    sys.exit("run_all.py needs Python 3.11 or newer, which uv brings; %s" % HOW)
try:
    from rosetta.cli import main
except ModuleNotFoundError as error:
    sys.exit("run_all.py needs packages that this Python lacks (%s); %s" % (error.name, HOW))

if __name__ == "__main__":
    main()

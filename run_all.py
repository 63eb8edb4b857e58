"""Runs every notebook that this machine can run and writes results.md. ``uv run run_all.py --help`` tells the rest."""

from rosetta.cli import main

if __name__ == "__main__":
    main()

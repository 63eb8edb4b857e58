"""Interim, until measuring is merged."""

import typer

app = typer.Typer()


def sweep() -> None:
    """Interim."""


@app.command()
def nothing() -> None:
    """Interim."""

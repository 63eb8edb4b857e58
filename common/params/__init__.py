"""One module of constants for each task; notebooks import them by name."""

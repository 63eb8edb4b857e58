"""Constants of small answers."""

SEED = 0

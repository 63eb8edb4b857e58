"""Published benchmarks, repeated: their points measured, and their tables and pictures, today's figures beside those of then."""

from rosetta.measure.benchmarks.page import PAGE as PAGE
from rosetta.measure.benchmarks.page import text as text
from rosetta.measure.benchmarks.page import write as write
from rosetta.measure.benchmarks import scaling as scaling

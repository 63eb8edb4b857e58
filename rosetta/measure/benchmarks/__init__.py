"""Published benchmarks, repeated: their points measured, and their tables and pictures, today's figures beside those of then."""

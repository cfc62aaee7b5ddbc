"""Benchmarks: what Fourwalls costs beside the raw runtime beneath, measured in one run."""

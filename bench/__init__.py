"""Honest timings: medians, with the threads stated, as ratios to a reference."""

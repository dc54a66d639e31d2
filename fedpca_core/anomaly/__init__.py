"""Anomaly detection: scores, thresholds, metrics, detectors, their baselines, and poisoning.

A detector is anything that gives each record a number; large means unusual. Here nearly all of
them measure the distance of a record to a subspace learnt from normal traffic.
"""

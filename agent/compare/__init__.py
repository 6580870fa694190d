"""Trace x Trace -> TraceDiff."""

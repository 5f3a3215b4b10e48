"""Doors to services for the queues `results`, `imports` and `exports`: Dramatiq actors inside Django."""

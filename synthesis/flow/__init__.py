"""Decisions on the way of a sentence: plain functions over small ports, so that they can be simulated. No Django."""

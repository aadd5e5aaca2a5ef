"""Measure how well a pipeline remembers: scenarios with known facts are processed, and the stored facts are scored.

Used by the command line alone. It may import everything except the command line and the server.
"""

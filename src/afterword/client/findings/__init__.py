"""Findings of agents in the Python interface: the methods of a scope."""

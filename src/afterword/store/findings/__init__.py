"""Findings of agents: their table, which findings a scope keeps, and changes of findings.

Facts are never derived from findings.
"""

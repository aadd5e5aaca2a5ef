"""Wishes that something said is not kept, in other words than "off the record": clauses and phrases. Pure.

The words of the clauses are in `words.toml`.
"""

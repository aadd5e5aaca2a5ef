"""The pipeline, which turns saved sessions into facts: one session, a batch, consolidation, imports, budgets, undo.

Its functions take plain values. They do not read the settings.
"""

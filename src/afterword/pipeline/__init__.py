"""The pipeline: from saved sessions to facts. One session, a batch, consolidation, imports, budgets, undo and redo.

It takes plain values, never settings.
"""

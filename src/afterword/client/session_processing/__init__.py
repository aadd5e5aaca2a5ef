"""Selects the sessions to process, and processes sessions in the background after they have ended.

`afterword.agents` must not import this package. Recorders get the processor through `agents.memory_settings`.
"""

"""Processing sessions in the background when they end.

`afterword.agents` must not import the client: recorders get the processor through `agents.memory_settings`.
"""

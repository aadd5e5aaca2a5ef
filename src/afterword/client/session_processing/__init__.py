"""Processing sessions in the background when they end.

The door imports it, and recorders of live agents call it through `afterword.agents.memory_settings`.
"""

"""Adapters for agents of AutoGen and Agent Framework: memory, session recorder, tools, and an extractor agent.

`agents.memory` imports neither the extractors nor the pipeline, so that it loads fast.
"""

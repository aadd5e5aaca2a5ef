"""Adapters for live agents of AutoGen and Agent Framework: memory, session recorder, tools, the extractor as an agent.

`agents.memory` imports neither the extractors nor the pipeline.
"""

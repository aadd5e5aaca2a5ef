"""Adapters for live AutoGen agents: memory, session recorder, tools, and the extractor as an agent.

The command line, the demo and applications import it. It imports the store and, in part, the extractors.
"""

"""What live AutoGen agents use: memory, recorder, the extractor as an agent, tools."""

"""The memory for agents that speak the Model Context Protocol: tools, resources and a prompt.

It may import `afterword.client` and the library `mcp`, which the extra `server` installs.
"""

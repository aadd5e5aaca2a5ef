"""What an agent may be told of one scope and may ask for, for services that agents call, such as the MCP server.

It may import everything that `afterword.client` may.
"""

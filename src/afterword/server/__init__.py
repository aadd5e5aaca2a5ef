"""The HTTP service, its web pages, and the MCP server. They import `afterword.client`, and no package below it."""

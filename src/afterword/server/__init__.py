"""Services over the Python interface: HTTP and MCP. They import `afterword.client`, and nothing below it."""

"""Services over the Python interface. They import `afterword.client`, and nothing below it."""

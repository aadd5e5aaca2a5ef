"""What is known, kept: vocabulary, timeline, tables, ledger, recall. Imports nothing else of afterword."""

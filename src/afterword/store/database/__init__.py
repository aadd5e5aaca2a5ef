"""The database itself: the engine, transactions, statements, and the files."""

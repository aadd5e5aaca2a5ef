"""The database itself: engine, transactions, addresses, caches, bulk statements and files.

Only the store imports this package, and code that opens a store.
"""

"""The database itself: engine, transactions, addresses, caches, bulk statements and files.

It knows the tables only as SQLModel classes. Only the store imports it, and those who open a store.
"""

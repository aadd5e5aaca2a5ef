"""Who may use a store from outside, and who did what: keys, audit entries, and requests that may be repeated.

No row here holds a user's words. The package is used by the store's ledger and by `afterword.client`.
"""

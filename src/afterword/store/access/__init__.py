"""Who may use a store from outside, and who did what: keys, webhooks, audit entries, requests that may be repeated.

No row here holds a user's words.
"""

"""Access of other programs to a store: API keys, webhooks, audit entries, and requests with an idempotency key.

The rows of these tables hold no words of a user.
"""

"""Moving what is stored of one scope into another, and where it came from. Uses the ledger; the pipeline uses it."""

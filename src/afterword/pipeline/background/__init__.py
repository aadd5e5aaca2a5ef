"""Background work: periodic jobs under leases, their schedule, webhooks, and workers that share a queue."""

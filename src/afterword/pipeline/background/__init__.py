"""Periodic and distributed work: schedule, leases, workers."""

"""Runs several jobs in order, unattended: a plan, leases on tables, time limits, a summary and metrics."""

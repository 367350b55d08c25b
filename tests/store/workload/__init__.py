"""Tests of workload management and scheduled queries."""

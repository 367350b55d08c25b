"""Workload management: resource plans with their pools, triggers and mappings, in Hive's ``WM_…`` tables."""

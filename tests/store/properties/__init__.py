"""Tests of property maps."""

"""Servers of the tests that need not import again what every server imports."""

"""Delegation tokens: requested by clients with Kerberos, and handed on to processes that have no ticket."""

"""Delegation tokens: what a client of Kerberos asks for, and hands on to processes that have no ticket."""

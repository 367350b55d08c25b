"""Handlers: thin, one module per entity. They translate a spelling of the protocol into a call of a store."""

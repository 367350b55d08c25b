"""The pages: each is a dataclass, which is its JSON form, and a template for HTML."""

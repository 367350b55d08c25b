"""The pages for people: each a dataclass, which is its JSON form, and a template that shows it."""

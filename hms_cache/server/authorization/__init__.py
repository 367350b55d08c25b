"""Authorization of calls: which objects a request is about, what each method needs, and what of an answer is shown."""

"""Column statistics: reads, writes, and their validity."""

"""Write ids of tables: their allocation, and which of them a reader may see."""

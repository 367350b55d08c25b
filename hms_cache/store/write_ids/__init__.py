"""Write ids of tables: allocation, and which of them a reader may see."""

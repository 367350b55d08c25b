"""The job ``files``: what lies in the directories of tables and partitions, beside what the catalog says of them."""

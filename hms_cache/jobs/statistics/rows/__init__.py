"""The rows of files, by Spark and by its workers."""

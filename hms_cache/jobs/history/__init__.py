"""The job ``history``: the notification log as a Parquet table by day."""

"""The job ``history``: stores the notification log as a Parquet table, partitioned by day."""

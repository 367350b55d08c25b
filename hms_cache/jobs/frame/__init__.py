"""Common parts of all jobs: their description, the Spark session, progress and report.

Nothing here imports PySpark before a job runs, so that ``hms-cache --help`` responds immediately and without the extra.
"""

from hms_cache.jobs.frame.job import Job, JobResult, JobRun, Option, ResultTable
from hms_cache.jobs.frame.options import AUTH, DATABASE, METASTORE, REQUESTS_PER_S, TABLES, WAREHOUSE
from hms_cache.jobs.frame.progress import Progress

__all__ = [
    "AUTH",
    "DATABASE",
    "METASTORE",
    "REQUESTS_PER_S",
    "TABLES",
    "WAREHOUSE",
    "Job",
    "JobResult",
    "JobRun",
    "Option",
    "Progress",
    "ResultTable",
]

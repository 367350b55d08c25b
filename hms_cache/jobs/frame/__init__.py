"""What all jobs share: how one is described, the Spark it runs on, its progress and its report.

Nothing here imports PySpark before a job runs, so that ``hms-cache --help`` answers at once and without the extra.
"""

from hms_cache.jobs.frame.job import Job, JobResult, JobRun, Option, ResultTable
from hms_cache.jobs.frame.options import DATABASE, METASTORE, REQUESTS_PER_S, TABLES, WAREHOUSE
from hms_cache.jobs.frame.progress import Progress

__all__ = [
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

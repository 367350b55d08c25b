"""All jobs by name. To add one, create a definition module (without PySpark) and a line here."""

from __future__ import annotations

from hms_cache.jobs.files.definition import JOB as FILES
from hms_cache.jobs.frame import Job
from hms_cache.jobs.history.definition import JOB as HISTORY
from hms_cache.jobs.repair.definition import JOB as REPAIR
from hms_cache.jobs.statistics.definition import JOB as STATISTICS
from hms_cache.jobs.verify.definition import JOB as VERIFY

_ALL: tuple[Job, ...] = (FILES, HISTORY, REPAIR, STATISTICS, VERIFY)

JOBS: dict[str, Job] = {job.name: job for job in _ALL}

"""``POST /locks/release?lock_id=N[&force=true]``: releases a lock whose owner is dead."""

from __future__ import annotations

import logging

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from hms_cache.admin.access import refusal, requester
from hms_cache.admin.sources import AdminSources
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.store.locks.owners import LockIsLive
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, NoSuchLockException, TxnOpenException

_log = logging.getLogger(__name__)


class LockRoutes:
    """The endpoint. Locks are in the database, so any worker releases them for all."""

    def __init__(self, sources: AdminSources) -> None:
        self._sources = sources

    async def release(self, request: Request) -> Response:
        """404 if the lock does not exist, 409 if it belongs to a transaction, or to a live owner without `force`."""
        refused = await refusal(self._sources, request)
        if refused is not None:
            return refused
        text = request.query_params.get("lock_id", "")
        if not (text.isascii() and text.isdecimal() and len(text) <= 18):
            return PlainTextResponse("lock_id must be the number of a lock\n", 400)
        force = request.query_params.get("force", "false")
        if force not in ("true", "false"):
            return PlainTextResponse("force must be true or false\n", 400)
        return await run_in_threadpool(self._release, int(text), force == "true", requester(request))

    def _release(self, lock_id: int, force: bool, by: str) -> Response:
        name = "locks release --force" if force else "locks release"
        operation = self._sources.operations.begin("command", name, str(lock_id), by)
        outcome = "failed"
        try:
            self._sources.transactions.release_lock(lock_id, force)
            outcome = "ok"
            return JSONResponse({"released": lock_id})
        except (NoSuchLockException, TxnOpenException, MetaException) as error:
            outcome = str(error.message)
            return PlainTextResponse(f"{outcome}\n", 404 if isinstance(error, NoSuchLockException) else 409)
        except (LockIsLive, DatabaseUnavailableError) as error:
            outcome = str(error)
            return PlainTextResponse(f"{outcome}\n", 409 if isinstance(error, LockIsLive) else 503)
        finally:
            self._sources.operations.end(operation, outcome)
            _log.warning("%s %d requested by %s: %s", name, lock_id, by, outcome)

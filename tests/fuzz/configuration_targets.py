"""Fuzz targets of configuration, resource plans and protected frames."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hms_cache.authentication.kerberos import GssapiMechanism, KerberosOptions
from hms_cache.authentication.local_names import LocalNames
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.config import Settings
from hms_cache.config.hive_values import HiveValues
from hms_cache.config.settings import Configuration
from hms_cache.key_stores.java_key_store import read_key_store
from hms_cache.notifications.message_builder import MessageBuilder
from hms_cache.server.buffers import BufferBudget
from hms_cache.server.fairness import SLICE_S, Waiter
from hms_cache.server.transports.sasl import SaslLayer, SaslPort
from hms_cache.store.engine.context import StoreContext
from hms_cache.store.engine.database import Database
from hms_cache.store.installation.init import init_schema
from hms_cache.store.warehouse import Warehouse
from hms_cache.store.workload.plan_parts import PlanParts
from hms_cache.store.workload.resource_plans import ResourcePlans
from hms_cache.thrift_gen.hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    WMPool,
    WMResourcePlan,
    WMTrigger,
)
from tests.key_stores.samples import PASSWORD, with_digest
from tests.manual_clock import ManualClock

SECRET = "hunter2 of the site"
REFUSALS = (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)


def read_hive_values(text: str) -> None:
    """A site of `name=value` lines; each name, and the whole text, is requested. No secret is revealed."""
    pairs = [line.partition("=") for line in text.split("\n")]
    site = {name: value for name, _, value in pairs} | {"javax.jdo.option.ConnectionPassword": SECRET}
    values = HiveValues(Configuration(Settings(), site=site))
    for name in (text, *site):
        found = values.get(name)
        assert found is None or isinstance(found, str)
        assert SECRET not in (found or "")


class _Protection:
    """Tokens begin with `ok`."""

    def wrap(self, data: bytes | memoryview) -> bytes:
        return b"ok" + bytes(data)

    def unwrap(self, data: bytes) -> bytes:
        if not data.startswith(b"ok"):
            raise AuthenticationError("not protected", "bad_message")
        return data[2:]


class _Upper(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data


def read_protected_frames(data: bytes) -> None:
    """Frames after a negotiation, in one piece and in portions: the same calls, and no more than a frame in memory."""

    async def read(portion: int) -> tuple[bytes, bool]:
        budget = BufferBudget(1 << 20, lambda: 0.0)
        port = SaslPort({}, 60, 60, 10_000, budget)
        upper = _Upper()
        layer = SaslLayer(upper, port, cast(Any, _AtOnce()))
        layer.connection_made(cast(Any, _Socket()))
        layer._negotiation, layer._protection, layer._counted = None, _Protection(), True
        for start in range(0, len(data), portion):
            layer.data_received(data[start : start + portion])
            assert len(layer._frame) <= port.max_frame_bytes + 4 + portion
        is_refused = layer._closing
        layer.connection_lost(None)
        port.close()
        assert budget.used_bytes == 0
        return upper.received, is_refused

    async def both() -> None:
        whole, pieces = await read(max(1, len(data))), await read(max(1, len(data) // 7))
        assert whole[1] == pieces[1]
        assert whole == pieces or whole[1]  # what came before a bad frame may not have been passed on

    asyncio.run(both())


class _AtOnce:
    """Turns for which nobody waits."""

    slice_s = SLICE_S

    def later(self, _address: str, waiter: Waiter) -> None:
        waiter.run_slice()


class _Socket:
    """The layer below."""

    def is_closing(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def read_key_store_and_objects(data: bytes) -> None:
    """A Java key store with a valid digest, so that its entries are read. Nothing is decrypted."""
    read_key_store(with_digest(data, PASSWORD), PASSWORD)


def read_gssapi_choice(data: bytes) -> None:
    """What a client with a ticket sends about layers and the user it acts for; it can only be itself."""
    pytest.importorskip("gssapi")
    mechanism = GssapiMechanism(
        KerberosOptions("hive/h@R", Path("/nowhere"), ("auth", "auth-conf"), LocalNames("DEFAULT", "R"))
    )
    mechanism.principal = "alice@R"
    mechanism._context = SimpleNamespace(
        complete=True,
        unwrap=lambda token: SimpleNamespace(message=token, encrypted=False),
        get_wrap_size_limit=lambda size, _encrypts: size,
    )
    mechanism._offered = True
    mechanism.step(data)
    assert (mechanism.user, mechanism.complete) == ("alice", True)


@cache
def _workload() -> tuple[ResourcePlans, PlanParts]:
    database = Database(f"sqlite:///{mkdtemp()}/workload.db")
    init_schema(database)
    clock = ManualClock()
    context = StoreContext(database, MessageBuilder(clock=clock), Warehouse(), Settings(), clock)
    return ResourcePlans(context), PlanParts(context)


def read_resource_plan(text: str) -> None:
    """A plan with pools and triggers of arbitrary texts and numbers: what is stored is returned and validated."""
    plans, parts = _workload()
    lines = text.split("\n")[:6]
    name = lines[0]
    try:
        plans.create(WMResourcePlan(name=name, queryParallelism=_integer(lines[-1])), None)
    except REFUSALS as error:
        assert error.message
        return
    stored = 0
    for line in lines[1:]:
        path, _, rest = line.partition("=")
        pool = WMPool(name, path, allocFraction=_number(rest), queryParallelism=_integer(rest), schedulingPolicy=rest)
        for write in (
            lambda pool=pool: parts.create_pool(pool),
            lambda path=path, rest=rest: parts.create_trigger(WMTrigger(name, path, rest, rest)),
        ):
            try:
                write()
                stored += 1
            except REFUSALS as error:
                assert error.message
    found = plans.get(name, None)
    assert len(found.pools or ()) + len(found.triggers or ()) >= stored
    plans.validate(name, None)
    plans.drop(name, None)


def _integer(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 10 else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

"""The whole configuration: an immutable tree, the source of each value, and the keys of the site files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from types import MappingProxyType
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo

from hms_cache.config.database_url import masked
from hms_cache.config.quantities import format_size
from hms_cache.config.secrets import redacted
from hms_cache.config.sections import (
    AdminSettings,
    AuthenticationSettings,
    AuthorizationSettings,
    CacheSettings,
    CatalogSettings,
    CompactionSettings,
    DatabaseSettings,
    EventSettings,
    LeaseSettings,
    LimitsSettings,
    LogSettings,
    SecuritySettings,
    ServerSettings,
    TransactionSettings,
    WarehouseSettings,
    WorkloadSettings,
)
from hms_cache.config.sections.authentication import problem_of_qualities
from hms_cache.config.sections.lease import problem_of_address
from hms_cache.config.setting import Section, facts_of
from hms_cache.config.unhonoured import SiteReview, Unhonoured
from hms_cache.values import frozen

#: Prefix of a setting's name in the environment, as in HMS_CACHE__SERVER__PORT.
ENVIRONMENT_PREFIX = "HMS_CACHE__"
DEFAULT_ORIGIN = "default"

#: Units by the last part of a setting's name.
_UNITS = {"s": "seconds", "ms": "milliseconds", "bytes": "bytes"}

#: Minimum length of the shared secret, so that it cannot be guessed from an observed proof.
SHORTEST_LEASE_SECRET = 16


class Settings(BaseModel):
    """All settings of the program. ``Settings()`` contains the defaults; :func:`hms_cache.config.load` reads all
    sources.

    Immutable: a reload creates a new tree.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: ServerSettings = Field(default_factory=ServerSettings)
    authentication: AuthenticationSettings = Field(default_factory=AuthenticationSettings)
    authorization: AuthorizationSettings = Field(default_factory=AuthorizationSettings)
    security: SecuritySettings = Field(default_factory=SecuritySettings)
    limits: LimitsSettings = Field(default_factory=LimitsSettings)
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    warehouse: WarehouseSettings = Field(default_factory=WarehouseSettings)
    catalog: CatalogSettings = Field(default_factory=CatalogSettings)
    cache: CacheSettings = Field(default_factory=CacheSettings)
    lease: LeaseSettings = Field(default_factory=LeaseSettings)
    events: EventSettings = Field(default_factory=EventSettings)
    transactions: TransactionSettings = Field(default_factory=TransactionSettings)
    compactions: CompactionSettings = Field(default_factory=CompactionSettings)
    workload: WorkloadSettings = Field(default_factory=WorkloadSettings)
    admin: AdminSettings = Field(default_factory=AdminSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        if self.admin.enabled and self.admin.port and any(one.port == self.admin.port for one in self.server.ports()):
            raise ValueError(f"admin.port must differ from server.port; both are {self.admin.port}")
        return self

    @model_validator(mode="after")
    def _qualities_are_known(self) -> Self:
        for index, one in enumerate(self.server.listeners):
            problem = problem_of_qualities(one.quality_of_protection)
            if one.quality_of_protection and problem is not None:
                raise ValueError(f"server.listeners[{index}]: {problem}")
        return self

    @model_validator(mode="after")
    def _leases_are_possible(self) -> Self:
        if self.cache.exactness != "lease" or not self.cache.enabled:
            return self
        if self.cache.peers != "none":
            raise ValueError(
                f"cache.exactness = lease needs cache.peers = none: {self.cache.peers} metastores announce no writes"
            )
        if self.server.workers > 1:
            raise ValueError("cache.exactness = lease needs server.workers = 1: start several servers instead")
        if len(self.lease.secret.get_secret_value()) < SHORTEST_LEASE_SECRET:
            raise ValueError(
                f"cache.exactness = lease needs a lease.secret of at least {SHORTEST_LEASE_SECRET} characters"
            )
        problem = problem_of_address(self.lease.host, self.lease.address)
        if problem is not None:
            raise ValueError(f"cache.exactness = lease: {problem}")
        return self

    @model_validator(mode="after")
    def _management_has_a_certificate(self) -> Self:
        if self.admin.enabled and self.admin.tls_enabled and self.server.tls_certificate_file is None:
            raise ValueError("admin.tls_enabled needs server.tls_certificate_file, the server's certificate")
        if self.admin.jwt_rights_claim and not self.authentication.jwt_jwks_url:
            raise ValueError("admin.jwt_rights_claim needs authentication.jwt_jwks_url, the keys of the issuer")
        return self


@frozen
class SettingReference:
    """A setting of the tree, by name: used by the documents, ``config print`` and the site files."""

    section: str
    key: str
    field: FieldInfo

    @property
    def name(self) -> str:
        """``section.key``"""
        return f"{self.section}.{self.key}"

    @property
    def unit(self) -> str:
        """The declared unit, or the one at the end of the name."""
        declared = facts_of(self.field).unit
        if declared or self.key.endswith("_per_s"):
            return declared
        return _UNITS.get(self.key.rpartition("_")[2], "")

    @property
    def environment_variable(self) -> str:
        return f"{ENVIRONMENT_PREFIX}{self.section}__{self.key}".upper()


@cache
def section_types() -> Mapping[str, type[Section]]:
    """Returns the sections in the order of the documents."""
    types: dict[str, type[Section]] = {}
    for name, section in Settings.model_fields.items():
        assert isinstance(section.annotation, type) and issubclass(section.annotation, Section)
        types[name] = section.annotation
    return MappingProxyType(types)


@cache
def all_settings() -> tuple[SettingReference, ...]:
    """Returns all settings in the order of the documents."""
    return tuple(
        SettingReference(section, key, declared)
        for section, section_type in section_types().items()
        for key, declared in section_type.model_fields.items()
    )


def shown(value: object, name: str = "") -> str:
    """Formats a value for ``config print`` and the pages: secrets are masked, sizes have a unit, and commands are shown
    without their arguments."""
    if isinstance(value, SecretStr):
        return "***" if value.get_secret_value() else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{scheme}: ***" for scheme in value)
    if isinstance(value, float):
        return f"{value:g}" if value < 1e6 or value == float("inf") else f"{value:.0f}"
    if isinstance(value, int) and name.endswith("_bytes"):
        return format_size(value)
    if value is None:
        return ""
    if name.endswith("_command"):
        # Its arguments may contain a secret, or credentials for a store of secrets.
        program, *arguments = str(value).split(maxsplit=1)[:2] or [""]
        return redacted(f"{program} ***" if arguments else program)
    return redacted(masked(str(value)))


@frozen
class Configuration:
    """The loaded settings.

    ``origins`` maps the ``section.key`` of each setting to the source of its value. ``site`` contains all properties of
    the site files as written, including those without a corresponding setting. ``site_review`` lists the properties
    that are not honoured. ``accepted_insecure`` lists the requested protection that this server does not give, but that
    ``security.accept_insecure`` accepts.
    """

    settings: Settings
    origins: Mapping[str, str] = field(default_factory=dict)
    site: Mapping[str, str] = field(default_factory=dict)
    site_review: SiteReview = field(default_factory=SiteReview)
    accepted_insecure: tuple[Unhonoured, ...] = ()

    def origin(self, name: str) -> str:
        """Returns the source of the value of ``section.key``."""
        return self.origins.get(name, DEFAULT_ORIGIN)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yields (name, value with secrets masked, origin) of each setting, in the order of the documents."""
        for reference in all_settings():
            value = getattr(getattr(self.settings, reference.section), reference.key)
            yield reference.name, shown(value, reference.name), self.origin(reference.name)

    def reloadable_changes(self, other: Settings) -> tuple[list[str], list[str]]:
        """Returns the names of settings that differ in ``other``: those that a running server can apply, and those that
        need a restart."""
        applied: list[str] = []
        refused: list[str] = []
        for reference in all_settings():
            ours = getattr(getattr(self.settings, reference.section), reference.key)
            if ours != getattr(getattr(other, reference.section), reference.key):
                (applied if facts_of(reference.field).reloadable else refused).append(reference.name)
        return applied, refused

    def with_changes(self, other: Configuration, names: Collection[str]) -> Configuration:
        """Returns this configuration with the values and origins of these settings from ``other``."""
        sections: dict[str, dict[str, object]] = {}
        for reference in all_settings():
            if reference.name in names:
                value = getattr(getattr(other.settings, reference.section), reference.key)
                sections.setdefault(reference.section, {})[reference.key] = value
        changed = {
            section: getattr(self.settings, section).model_copy(update=values) for section, values in sections.items()
        }
        origins = {name: origin for name, origin in self.origins.items() if name not in names}
        origins |= {name: origin for name, origin in other.origins.items() if name in names}
        return replace(self, settings=self.settings.model_copy(update=changed), origins=origins)

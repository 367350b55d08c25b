"""Sources of users' groups: the configured directory, and the operating system."""

from __future__ import annotations

from hms_cache.app.security.authentication import directory_options
from hms_cache.authentication.delegation.proxy_users import GroupsOf, GroupsUnknownError
from hms_cache.authentication.directory import Directory
from hms_cache.authentication.directory_filters import PartlyAnsweredError
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.authentication.system_groups import SystemGroups
from hms_cache.authorization.cached_groups import CachedGroups
from hms_cache.authorization.decisions import UndecidedError, UserUndecidedError
from hms_cache.config import Settings
from hms_cache.errors import StartupError

SYSTEM_MAX_AGE_S = 60.0
"""Maximum age of the system's groups; the default for a directory's is the same."""


def directory_groups(settings: Settings) -> CachedGroups | None:
    """Groups of the directory; None if nothing uses them. Raises StartupError."""
    authorizes = settings.authorization.directory_groups
    if not authorizes and settings.authentication.proxy_groups != "directory":
        return None
    wanted_by = "authorization.directory_groups" if authorizes else "authentication.proxy_groups = directory"
    section = settings.authentication
    options = directory_options(section)
    if not options.urls or not options.account:
        raise StartupError(
            f"{wanted_by} needs a directory and an account that looks for users and groups in it",
            remedy="Set authentication.ldap_url, ldap_bind_dn and ldap_bind_password_file.",
        )
    if not (options.name_patterns or options.base) or not any(options.filters.group_bases):
        raise StartupError(
            f"{wanted_by}: the location of users and groups is not configured",
            remedy="Set authentication.ldap_base_dn, or ldap_user_dn_pattern and ldap_group_dn_pattern.",
        )
    directory = Directory(options)

    def read_groups(user: str) -> frozenset[str]:
        try:
            return directory.groups_of(user)
        except PartlyAnsweredError as error:
            raise UserUndecidedError(str(error)) from error
        except AuthenticationError as error:
            raise UndecidedError(str(error)) from error

    return CachedGroups(read_groups, settings.authorization.directory_groups_max_age_s)


def groups_for_proxies(directory: CachedGroups | None) -> GroupsOf:
    """For `ProxyUsers`: groups of the directory, otherwise of the system."""
    known = directory or CachedGroups(_of_system(SystemGroups()), SYSTEM_MAX_AGE_S)

    def groups_of(user: str) -> frozenset[str]:
        try:
            return known.recent(user)
        except UndecidedError as error:
            raise GroupsUnknownError from error

    return groups_of


def _of_system(system: SystemGroups) -> GroupsOf:
    def read_groups(user: str) -> frozenset[str]:
        try:
            return system.of(user)
        except OSError as error:  # includes TimeoutError
            raise UndecidedError(f"the operating system does not return groups: {error}") from error

    return read_groups

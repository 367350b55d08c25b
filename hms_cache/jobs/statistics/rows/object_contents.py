"""Reads small objects. Objects in S3 are read through Arrow, which takes a quarter of the time of s3fs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from fsspec.asyn import sync

from hms_cache.store.warehouse.file_systems import driver_errors

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_UNDERSTOOD = frozenset({"endpoint_url", "region_name"})
"""Arguments of s3fs's client that Arrow supports as well."""


class ObjectContents:
    """Reads the objects of one store. Thread-safe.

    The store's driver is used if Arrow would behave differently: options that Arrow does not have, proxies, buckets in
    another region. After an error of Arrow, everything is read by the driver, whose error is the one reported.
    """

    def __init__(self, file_system: Any) -> None:
        """:param file_system: of fsspec. Its credentials are looked up by `renew`, before the first read."""
        self._file_system = file_system
        self._may_be_arrow = _is_plain_s3(file_system)
        # Replaced as a whole: each thread uses the instance that it finds.
        self._arrow: S3FileSystem | None = None
        self._credentials: Any = None

    def renew(self) -> None:
        """Checks for newer credentials: those of a role are valid for about an hour. Never raises."""
        if not self._may_be_arrow:
            return
        try:
            found = sync(self._file_system.loop, _credentials, self._file_system)
            if found != self._credentials:
                self._arrow, self._credentials = _arrow(self._file_system, found), found
        except Exception:
            self._arrow, self._may_be_arrow = None, False  # the driver reports the cause

    @property
    def is_through_arrow(self) -> bool:
        """Whether the next object is read through Arrow."""
        return self._arrow is not None

    def read(self, name: str) -> bytes:
        """Reads an object by its name in the driver. Raises FileNotFoundError, OSError."""
        arrow = self._arrow
        if arrow is not None:
            try:
                # No decompression, whatever the name ends with.
                with arrow.open_input_stream(name, compression=None) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                raise
            except OSError:
                self._arrow, self._may_be_arrow = None, False
        with driver_errors():
            return bytes(self._file_system.cat_file(name))


def _is_plain_s3(file_system: Any) -> bool:
    protocol = file_system.protocol
    if "s3" not in ((protocol,) if isinstance(protocol, str) else protocol) or not hasattr(file_system, "call_s3"):
        return False
    more = (file_system.anon, file_system.requester_pays, file_system.version_aware, file_system.s3_additional_kwargs)
    return not any(more) and not file_system.config_kwargs and not set(file_system.client_kwargs) - _UNDERSTOOD


async def _credentials(file_system: Any) -> tuple[str, str, str | None]:
    client = await file_system.set_session()
    found = await client._request_signer._credentials.get_frozen_credentials()
    return found.access_key, found.secret_key, found.token


def _arrow(file_system: Any, credentials: tuple[str, str, str | None]) -> S3FileSystem | None:
    from pyarrow.fs import S3FileSystem

    client = file_system.s3.meta
    place = urlsplit(client.endpoint_url)
    host = place.hostname or ""
    if place.scheme in getproxies() and not proxy_bypass(host):
        return None
    # Any other endpoint is passed to Arrow, such as one for FIPS.
    usual = {f"s3.{client.region_name}.amazonaws.com{end}" for end in ("", ".cn")} | {"s3.amazonaws.com"}
    access_key, secret_key, token = credentials
    authorities = file_system.session.get_config_variable("ca_bundle") if place.scheme == "https" else None
    return S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        session_token=token,
        region=client.region_name,
        scheme=place.scheme,
        endpoint_override=None if host in usual else place.netloc,
        # Older releases of Arrow do not have this option; then the driver reads.
        **({} if authorities is None else {"tls_ca_file_path": authorities}),
    )

"""Exceptions that a client raises, in addition to those that metastores answer."""

from __future__ import annotations

from thrift.transport.TTransport import TTransportException

from hms_cache.errors import HmsCacheError

CONNECTION_FAILURES = (TTransportException, OSError, EOFError)
"""Exceptions of a transport whose peer is gone or does not answer."""


class MetastoreUnavailableError(HmsCacheError):
    """No metastore of the list could be reached, or none of them answered a read. The same call may succeed later."""

    retriable = True


class OutcomeUnknownError(HmsCacheError):
    """The connection broke after a write was sent, so the write may or may not have happened. The client does not send
    it again."""


class AuthenticationRefusedError(HmsCacheError):
    """The metastore refuses the client's identity, or requires another kind of authentication; or it could not prove
    its own identity. The call was not executed.

    `retriable`: the metastore could not reach the service that decides (a directory, an issuer of tokens).
    """

    def __init__(self, text: str, *, retriable: bool = False) -> None:
        super().__init__(text)
        self.retriable = retriable


class CredentialsError(HmsCacheError):
    """The client's credentials are missing or unusable: a ticket, a token, the file with a password. Nothing was
    sent."""


class KerberosUnavailableError(MetastoreUnavailableError):
    """No KDC answers, so the client cannot get a ticket for the metastore. The same call may succeed later."""

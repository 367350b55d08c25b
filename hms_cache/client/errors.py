"""What a client raises beside what metastores answer."""

from __future__ import annotations

from thrift.transport.TTransport import TTransportException

from hms_cache.errors import HmsCacheError

CONNECTION_FAILURES = (TTransportException, OSError, EOFError)
"""What a transport raises when the other side is gone or silent."""


class MetastoreUnavailableError(HmsCacheError):
    """No metastore of the list could be reached, or none of them answered a read. The same call may succeed later."""

    retriable = True


class OutcomeUnknownError(HmsCacheError):
    """The connection broke after a write was sent: it may have happened or not. It is not sent again by the client."""


class AuthenticationRefusedError(HmsCacheError):
    """The metastore does not take the client for who it says it is, or asks for another way to show it; or the
    metastore did not show that it is the one that was meant. No call was carried out.

    `retriable`: the metastore could not ask who knows (a directory, an issuer of tokens).
    """

    def __init__(self, text: str, *, retriable: bool = False) -> None:
        super().__init__(text)
        self.retriable = retriable


class CredentialsError(HmsCacheError):
    """What the client needs to authenticate is not there or cannot be used: a ticket, a token, the file of a password.
    Nothing was sent."""


class KerberosUnavailableError(MetastoreUnavailableError):
    """No KDC answers, so that there is no ticket for the metastore. The same call may succeed later."""

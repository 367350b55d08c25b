"""A small Python client for metastores, with fail-over between addresses, authentication, and transactions whose reads
carry their write ids.

client = MetastoreClient("thrift://a:9083,thrift://b:9083")
with Transaction(client, ["sales.orders"]) as txn:
    table = txn.get_table("sales.orders")
    txn.alter_table("sales.orders", changed)

secured = MetastoreClient("thrift+tls://a:9083", authentication_of("kerberos server=hive/_HOST@EXAMPLE.COM"))
"""

from hms_cache.client.authentication.texts import authentication_of
from hms_cache.client.authentication.values import (
    Authentication,
    BearerToken,
    DelegationToken,
    Kerberos,
    Password,
)
from hms_cache.client.delegation import cancelling_tokens, for_tasks
from hms_cache.client.errors import (
    AuthenticationRefusedError,
    CredentialsError,
    MetastoreUnavailableError,
    OutcomeUnknownError,
)
from hms_cache.client.metastore_client import MetastoreClient
from hms_cache.client.metastores import Metastores
from hms_cache.client.transaction import TableVersion, Transaction

__all__ = [
    "Authentication",
    "AuthenticationRefusedError",
    "BearerToken",
    "CredentialsError",
    "DelegationToken",
    "Kerberos",
    "MetastoreClient",
    "MetastoreUnavailableError",
    "Metastores",
    "OutcomeUnknownError",
    "Password",
    "TableVersion",
    "Transaction",
    "authentication_of",
    "cancelling_tokens",
    "for_tasks",
]

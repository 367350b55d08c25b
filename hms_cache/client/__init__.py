"""A small Python client of metastores: fail-over over addresses, and transactions whose reads carry their write ids.

client = MetastoreClient("thrift://a:9083,thrift://b:9083")
with Transaction(client, ["sales.orders"]) as txn:
    table = txn.get_table("sales.orders")
    txn.alter_table("sales.orders", changed)
"""

from hms_cache.client.connection import MetastoreUnavailableError, OutcomeUnknownError
from hms_cache.client.metastore_client import MetastoreClient
from hms_cache.client.transaction import TableVersion, Transaction

__all__ = ["MetastoreClient", "MetastoreUnavailableError", "OutcomeUnknownError", "TableVersion", "Transaction"]

"""All fixes, by the numbers of their defects."""

from tests.defects import of_answers, of_claims, of_servers, of_transactions
from tests.defects.fix import Fix

FIXES: tuple[Fix, ...] = (*of_answers.FIXES, *of_servers.FIXES, *of_claims.FIXES, *of_transactions.FIXES)

"""Where this project's metastore differs from Hive 4.0.1 and is correct.

Each rule states to which pairs of answers it applies, and why. A difference without a rule is a failure of the suite;
so is a reason for a case that does not differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hms_cache.wire import METHODS

NO_LOCATION = "Java fails on an absent location; ours keeps the one that the partition has."
CATALOG_IGNORED = "Java fails in the middle of its transaction; ours alters the table that the call names."
CREATOR_OF_CATALOG = "Ours gives a new catalog's database to the account of the server, as for `default`."
ECHO = "Java answers with the names as they were sent, ours as they are stored."
EXTERNAL_DATA = "Ours never deletes files of external tables, unless the table says so (`external.table.purge`)."
DATABASE_ERROR = "Java answers with its database's error; ours says what is wrong."
MERGED = "Java merges, and answers that it did not."
NO_SUCH_OBJECT = "Java says it granted what it did not: there is no such table or partition."
ALL_OF_COLUMN = (
    "Java lists nothing of all principals where it is asked for a column of a partition, or in upper case; ours does."
)
PREFIX = "Ours takes the catalog's prefix off database names in all requests."
RESOURCES = "Java keeps the old resources of an altered function, whatever the new ones are."
PROJECTION = "Ours answers what was asked for; Java adds a type and leaves out the catalog."
NULL_PATTERNS = (
    "Java stumbles over an absent pattern and answers nothing; ours means all names by it, as in `get_tables`."
)
UNNAMED_SERDE = "Java keeps serdes without a name, and cannot tell them apart; ours asks for a name."
COPIED_SERDE = "Java copies a serde when a version is mapped to it, and then finds two of the name and fails."
DECLARED_PROPERTIES = "Java serves no properties until a plugin declares their names; ours keeps any."
WRAPPED = "Java wraps the exception that the method declares into a MetaException; ours throws it."
NO_URL = "Java takes the URL away from the connector; ours refuses one that leads nowhere."
SERVER_WIDE = "Ours has this setting for the whole server: a connection cannot change what others get from memory."
KEY_TAKEN = "Java fails when one of several transactions has its write id of the table already; ours answers that."
SHARED_WRITERS = (
    "Clients of Hive 3 do not send the flag for exclusive writes, which 4.0.1 then takes as set: the second of two"
    " writers with shared locks overwrites what the first wrote. Ours looks at the locks, and aborts it."
)
OVER = "Java fails inside, or gives a lock, for a transaction that is over; ours says that it is."
OPEN_AT_SOURCE = "Java takes write ids that are open at the source for valid ones; ours for aborted ones."
STATE_NAMES = "Ours knows the states of compactions by their names as well as by their codes."
NAMELESS_WORKER = "Java gives compactions to a worker without a name, which nobody can tell from a dead one later."
NOT_CLEANED = "Java answers that it cleaned what is not in its queue."
SAME_REBUILD = "A transaction that holds the lock gets it again: its client may not have got the first answer."
REBUILD_IS_OVER = (
    "Java leaves the lock of a rebuild that was aborted until its cleaner comes by; ours gives it to the next."
)
NO_TXN = "Java gives the lock to a transaction that does not exist."
NO_PARTITIONS = (
    "Java answers that it altered none; ours refuses the empty list, which Hive's own tests of its client expect."
)
LATER_FIELD = "4.0.1 does not know the field, which came with a later release."
LIMIT_FORGOTTEN = "Java forgets the limit where it evaluates the expression itself."
KEYLESS = "A table without keys has no partitions; Java looks for the expression's column in it."
EMPTY_CATALOG = "Java looks for a catalog of an empty name; ours takes it for an absent one."
NO_SUCH_KEY = "Java orders by nothing where there is no such key; ours says that there is none."
ORDER_OF_TEXTS = (
    "Java orders keys of other types than texts, integers and dates by their texts, the default partition's name among"
    " them; ours by their values, NULL first."
)
LOST_WRITE = "Java forgets the files of a partition that is not there, and of those after it; ours says that it is not."
SELECTED_TWICE = "Java answers a partition twice that two expressions select."
EMPTY_EXPRESSION = "Java cannot read an empty expression here; ours takes it for none, as both do elsewhere."
CLAIMS_JUDGED = "Java passes on what partitions claim of their statistics; ours judges it by the reader's write ids."
_WITHOUT_JUDGEMENT = frozenset(
    {
        *("get_partition_req", "get_partitions_by_names_req", "get_partitions_ps_with_auth_req", "get_partitions_req"),
        "get_partitions_with_specs",
    }
)
LOST_LOCATION = (
    "Java stores no location for a table that is altered without one where it does not have to list the files; ours"
    " keeps the one that the table has."
)
NO_SUCH_COLUMN = (
    "Java takes a default or a check of a column that the table does not have for one of no column; ours refuses it."
)
SKEW_IN_OTHER_CASE = "Java knows no skewed column by a name in another case; ours does, as elsewhere."
KEY_IN_OTHER_CASE = (
    "Java knows no key of an exchange by a name in another case than the table's; ours does, as elsewhere."
)
FORGOTTEN_SERDE = (
    "Java forgets the classes and the type of a serde when a table or a partition is altered; ours keeps what is sent."
)
OWN_PLACE = (
    "Java moves the directory that a partition would have by its values, and forgets the one that it has; ours refuses"
    " to exchange a partition that lies elsewhere."
)
TWO_SPELLINGS = "Java keeps two values of a setting that has two names; ours means one setting by both."

UNCOUNTED = (
    "Java claims that a partition's basic statistics are exact when it gets its first column statistics, though nobody"
    " counted; ours does not."
)
SERDE_COMMENTS = (
    "Java asks the class of the serde for columns, which knows no comments; ours answers those that are stored."
)
NAMED_TWICE = "Java counts a partition twice that is named twice, or extrapolates from it; ours counts it once."
NO_PARTITION = "Java fails on a partition that does not exist; ours says that there is none."

NAMES_OF_COMPACTIONS = "Java keeps the names of a compaction as they were sent, ours as the table is stored."
NOT_COMMITTED = "Java says that it did not commit; ours which name is not the table's."
NAMELESS = "Java's text leaves the name out."

_ABSENT = re.compile(
    r"NullPointerException|because .* is null|is null$|Required field|Internal error|: null$|null pointer"
)
_FILTER_ERROR = "Error parsing partition filter"


@dataclass(frozen=True)
class Rule:
    """One kind of difference: `applies` to (call, Java's outcome, this project's)."""

    reason: str
    applies: Callable[[Any, Any, Any], bool]


def _is_crash(java: Any) -> bool:
    return bool(java.error) and (java.error.startswith("TApplicationException") or bool(_ABSENT.search(java.text)))


def _partitions(value: Any) -> set[str]:
    """The partitions of an answer in whatever form, by their values or their names."""
    if isinstance(value, dict):
        if "values" in value:
            return {repr(value["values"])}
        return {found for item in value.values() for found in _partitions(item)}
    if isinstance(value, list):
        return {found for item in value for found in ({item} if isinstance(item, str) else _partitions(item))}
    return set()


def _is_undecided(call: Any, java: Any, ours: Any) -> bool:
    if java.error:
        return False
    if call.method == "get_partition_names_req":
        return "cannot be evaluated exactly" in str(ours.text)
    is_said = isinstance(ours.value, dict) and ours.value.get("hasUnknownPartitions") is True
    return is_said and _partitions(ours.value) >= _partitions(java.value)


def _is_unreadable(call: Any, java: Any, ours: Any) -> bool:
    is_said = isinstance(ours.value, dict) and ours.value.get("hasUnknownPartitions") is True
    return is_said and str(java.text).startswith("SerializationUtilities#")


def _is_default_taken_for_text(call: Any, java: Any, ours: Any) -> bool:
    if java.error or ours.error or not call.method.endswith(("_by_expr", "_names_req")):
        return False
    more = _partitions(java.value) - _partitions(ours.value)
    is_less = _partitions(java.value) > _partitions(ours.value)
    return is_less and all("__HIVE_DEFAULT_PARTITION__" in one for one in more)


def is_equal_without(java: Any, ours: Any, *names: str) -> bool:
    """Whether both answers are equal except for fields with these names."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            items = sorted(value.items(), key=lambda item: str(item[0]))
            return {key: without(item) for key, item in items if key not in names}
        return [without(item) for item in value] if isinstance(value, list) else value

    def found(value: Any) -> list[str]:
        # As text, in any order: an unordered list was sorted by the omitted fields, too.
        items = [value] if isinstance(value, dict) else value
        return sorted(repr(without(item)) for item in items)

    if java.error or ours.error:
        return False
    lists = [next((item for item in one.value.values() if isinstance(item, list)), one.value) for one in (java, ours)]
    return found(lists[0]) == found(lists[1])


_VIEW_TEXTS = ("viewOriginalText", "viewExpandedText")


def _has_lost_its_location(call: Any, java: Any, ours: Any) -> bool:
    """Whether Java's table has none and ours has, and nothing else differs except the view texts of what is no view."""
    if call.method != "get_table_req" or java.error or ours.error:
        return False
    theirs, own = java.value["table"], ours.value["table"]
    if theirs["sd"].get("location") or not own["sd"].get("location"):
        return False
    own = own | {"sd": _without(own["sd"], ("location",))}
    return theirs == own or (theirs["tableType"] != "VIRTUAL_VIEW" and theirs == _without(own, _VIEW_TEXTS))


_OF_ANSWERS = ("isStatsCompliant", "privileges", "writeId")
"""Fields of a partition that answers to other requests fill."""


def _without(value: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in names}


def _repeat_a_partition(call: Any, java: Any, ours: Any) -> bool:
    begin = "Partition(values:"
    texts = [one.text.partition(begin) for one in (java, ours)]
    return all(text[1] for text in texts) and texts[0][0].rstrip() == texts[1][0].rstrip()


RULES = (
    Rule(
        DATABASE_ERROR,
        lambda call, java, ours: (
            "Exception thrown when executing query" in java.text or "Illegal mix of collations" in java.text
        ),
    ),
    Rule(
        "Ours names the catalog of a lock, which 4.0.1 knows none of.",
        lambda call, java, ours: call.method == "show_locks" and is_equal_without(java, ours, "catname"),
    ),
    Rule(
        "Both texts repeat the partition that is refused, Java's with what it lacks as null.",
        _repeat_a_partition,
    ),
    Rule(
        "Java says that a database which is not there is a remote one; ours that the table is not there.",
        lambda call, java, ours: java.text == "Alter table in REMOTE database is not allowed",
    ),
    Rule(
        "Both say the same, Java without a blank.",
        lambda call, java, ours: (
            bool(java.error) and java.error == ours.error and java.text.replace(" ", "") == ours.text.replace(" ", "")
        ),
    ),
    Rule(
        CLAIMS_JUDGED,
        lambda call, java, ours: (
            call.method in _WITHOUT_JUDGEMENT
            and call.arguments[0].validWriteIdList is not None
            and is_equal_without(java, ours, "COLUMN_STATS_ACCURATE", "isStatsCompliant", "colStats")
        ),
    ),
    Rule(
        "Ours says by which agent a transaction was opened, and what is noted of it; Java keeps it to itself.",
        lambda call, java, ours: (
            call.method == "get_open_txns_info" and is_equal_without(java, ours, "agentInfo", "metaInfo")
        ),
    ),
    Rule(
        "Ours tells the table's id with its write ids, by which a client knows a table that was made anew.",
        lambda call, java, ours: call.method == "get_valid_write_ids" and is_equal_without(java, ours, "tableId"),
    ),
    Rule(
        "Ours gives a worker all that the queue knows of its compaction.",
        lambda call, java, ours: (
            call.method.startswith("find_next_compact")
            and is_equal_without(java, ours, "enqueueTime", "runas", "state", "workerId")
        ),
    ),
    Rule(
        "Ours writes the highest write id where 4.0 does and where later releases do, and has old files wait for the "
        "last transaction as well that was opened before the compaction's commit.",
        lambda call, java, ours: (
            call.method == "show_compact" and is_equal_without(java, ours, "hightestWriteId", "nextTxnId")
        ),
    ),
    Rule(
        "The method declares no exception: Java's fault names the field that is not set, ours what it is for.",
        lambda call, java, ours: (
            java.error == "TApplicationException 7"
            and ours.error.startswith("TApplicationException")
            and not METHODS[call.method].exceptions
        ),
    ),
    Rule(
        "Java answers nothing at all, which its clients report as an unknown result; ours throws the "
        "NoSuchObjectException that the method declares for it.",
        lambda call, java, ours: java.error == "TApplicationException 5" and ours.error == "NoSuchObjectException",
    ),
    Rule(
        "Java fails on an absent value as such (null pointer, required field); ours takes the protocol's default, or "
        "says what is missing in an exception that the method declares.",
        lambda call, java, ours: _is_crash(java) and not ours.error.startswith("TApplicationException"),
    ),
    Rule(
        "Ours writes every exception of this method under the one field id that clients of 2.3 know as well.",
        lambda call, java, ours: (
            call.method == "get_partition_names"
            and (java.error, ours.error) == ("MetaException", "NoSuchObjectException")
        ),
    ),
    Rule(
        "The filter grammar of 4.0.1 has no IN for one column, no NOT before parentheses and no blank text; ours does.",
        lambda call, java, ours: java.text.startswith(_FILTER_ERROR) and not ours.error,
    ),
    Rule(
        "Java takes the last given value for the beginning of one; ours finds exactly the partitions that have it.",
        lambda call, java, ours: call.method.startswith("get_partition") and call.arguments[2:3] == (["2024"],),
    ),
    Rule(
        "Java cuts the values out of partition names: it does not undo their escaping, ignores the order that is asked "
        "for, adds the keys of the filter, and cuts wrongly for a column that is no key.",
        lambda call, java, ours: call.method == "get_partition_values" and not java.error,
    ),
    Rule(
        "Clients of 2.3 and 3.1 do not know the exception that 4.0.1 throws here; NoSuchObjectException all do.",
        lambda call, java, ours: (
            call.method == "get_partitions_by_names"
            and (java.error, ours.error) == ("InvalidObjectException", "NoSuchObjectException")
        ),
    ),
    Rule(
        "Ours does not decide all of Hive's functions and conversions: it answers whatever may match and says so, and "
        "refuses to name partitions, since names could not say so.",
        _is_undecided,
    ),
    Rule(
        "Ours takes what it cannot read for an expression that it cannot decide; Java fails.",
        _is_unreadable,
    ),
    Rule(
        "Where Java has its database evaluate an expression it compares the default partition's name as a text; ours "
        "takes it for NULL, as Hive does where it evaluates one itself.",
        _is_default_taken_for_text,
    ),
    Rule(
        "Java forgets the filters of a request that projects no fields.",
        lambda call, java, ours: (
            call.method == "get_partitions_with_specs"
            and not call.arguments[0].projectionSpec.fieldList
            and not java.error
        ),
    ),
    Rule(
        "Java's aggregation in SQL loses the scale of decimals; ours answers the least and the greatest of the values.",
        lambda call, java, ours: (
            call.method == "get_aggr_stats_for" and bool(java.value) and "decimalStats" in repr(java.value)
        ),
    ),
    Rule(
        "Java keeps an old bound where new statistics have none, as of a column that has only NULL now; ours has none.",
        lambda call, java, ours: (
            call.method in ("get_table_statistics_req", "get_partitions_statistics_req")
            and is_equal_without(java, ours, "lowValue", "highValue")
            and "highValue" in repr(java.value)
        ),
    ),
    Rule(
        "Java leaves out of the answer what is empty or no field of it; ours answers it empty.",
        lambda call, java, ours: (
            call.method == "get_partitions_with_specs"
            and is_equal_without(java, ours, "bucketCols", "parameters", "skewedInfo", "sortCols")
        ),
    ),
    Rule(
        "Java makes a path of a name without escaping it, and fails on a colon.",
        lambda call, java, ours: (
            call.method.endswith("_partition_by_name") and "Relative path in absolute URI" in java.text
        ),
    ),
    Rule(
        "Java forgets the texts of a view where the table is none; ours answers what was stored.",
        lambda call, java, ours: (
            call.method == "get_table_req"
            and not java.error
            and not ours.error
            and java.value["table"]["tableType"] != "VIRTUAL_VIEW"
            and java.value["table"] == _without(ours.value["table"], _VIEW_TEXTS)
        ),
    ),
    Rule(LOST_LOCATION, _has_lost_its_location),
    Rule(
        ECHO,
        lambda call, java, ours: (
            call.method == "append_partition_req"
            and not java.error
            and not ours.error
            and _without(java.value, ("catName",)) == _without(ours.value, ("catName",))
        ),
    ),
    Rule(
        "Java answers an added partition as it was sent, ours as it is stored.",
        lambda call, java, ours: (
            call.method in ("add_partition", "add_partition_with_environment_context")
            and not java.error
            and not ours.error
            and _without(java.value, _OF_ANSWERS) == _without(ours.value, _OF_ANSWERS)
        ),
    ),
    Rule(
        "Java leaves it to its client to pass over a database that is not there; ours does so on request.",
        lambda call, java, ours: (
            call.method == "drop_database_req"
            and call.arguments[0].ignoreUnknownDb
            and java.error == "NoSuchObjectException"
            and not ours.error
        ),
    ),
    Rule(
        "Java fails where a managed directory that the request names is there already; ours takes it.",
        lambda call, java, ours: java.text.startswith("Unable to create database managed directory"),
    ),
    Rule(
        "Java answers nothing to callers without processor capabilities: it skips its translation, and the tables too.",
        lambda call, java, ours: call.method == "get_tables_ext" and java.value == [],
    ),
)


def reason_for(call: Any, java: Any, ours: Any) -> str:
    """Why these outcomes may differ; empty if they may not."""
    if call.differs:
        return str(call.differs)
    return next((rule.reason for rule in RULES if rule.applies(call, java, ours)), "")

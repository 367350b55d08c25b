"""Converts Hive's serialized expressions to trees.

`get_partitions_by_expr`, `get_partitions_spec_by_expr`, `get_partition_names_req` and the EXPRS of
`drop_partitions_req` contain an `ExprNodeGenericFuncDesc` serialized by Kryo: a function (a `GenericUDF`) and its
children, down to columns and constants. Supported are comparisons, AND, OR, NOT, IN (also of structs), BETWEEN, LIKE,
IS [NOT] NULL, TRUE and FALSE, and casts. Any other function becomes `Unknown` at its place; bytes that cannot be
decoded become a tree that is `Unknown` as a whole.

After `setMetaConf("metastore.expression.proxy", "…MsckPartitionExpressionProxy")` the same bytes are a filter text.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from hms_cache.expressions import tree
from hms_cache.expressions.binding import bind
from hms_cache.expressions.bound import Bound
from hms_cache.expressions.errors import FilterBindError, FilterSyntaxError
from hms_cache.expressions.expression_binding import bind_expression
from hms_cache.expressions.filter_parser import DEFAULT_LIMITS, ERROR_PREFIX, FilterLimits, parse_filter
from hms_cache.expressions.key_types import DEFAULT_PARTITION_NAME, PartitionKey
from hms_cache.expressions.kryo import KryoError, KryoObject, LocalTimestamp, Value, read_expression
from hms_cache.input_limits import exceeded, input_limits
from hms_cache.metadata.partition_name_codec import unescape_path_name
from hms_cache.values import frozen

_log = logging.getLogger(__name__)

MAX_DEPTH = 100
"""Maximum nesting of functions, where ORs in ORs and ANDs in ANDs count as one: binding and evaluation are recursive,
with some 4 of the interpreter's 1,000 Python frames per level."""

_LONGEST_NAME = 256
"""Maximum length of the name of a column, type or function: Hive stores 128 characters for partition keys. A name is
copied, into reasons and types, at each place where the expression refers to it."""

_PLAN = "org.apache.hadoop.hive.ql.plan.ExprNode"
_GENERIC = "org.apache.hadoop.hive.ql.udf.generic.GenericUDF"
_UDF = "org.apache.hadoop.hive.ql.udf.UDF"

_COMPARISONS = {
    "OPEqual": tree.ComparisonOperator.EQUAL,
    "OPNotEqual": tree.ComparisonOperator.NOT_EQUAL,
    "OPLessThan": tree.ComparisonOperator.LESS,
    "OPEqualOrLessThan": tree.ComparisonOperator.LESS_OR_EQUAL,
    "OPGreaterThan": tree.ComparisonOperator.GREATER,
    "OPEqualOrGreaterThan": tree.ComparisonOperator.GREATER_OR_EQUAL,
}
_GENERIC_CASTS = {"ToDate", "Timestamp", "ToVarchar", "ToChar", "ToDecimal", "ToString"}
_BRIDGED_CASTS = {"ToBoolean", "ToByte", "ToShort", "ToInteger", "ToLong", "ToFloat", "ToDouble", "ToString"}


@frozen
class ParsedExpression:
    """The `expr` of a request. `is_filter_text`: it is an MSCK connection's text instead of a Hive expression."""

    tree: tree.Predicate
    is_filter_text: bool

    @property
    def has_unknown(self) -> bool:
        """Whether any part of it is not supported."""
        return tree.has_unknown(self.tree)

    def bind(self, keys: Sequence[PartitionKey], default_partition_name: str = DEFAULT_PARTITION_NAME) -> Bound:
        """Binds it to a table's keys, for `evaluate_expression`.

        Raises `FilterBindError` for a filter text that does not fit the table; an expression that does not fit is
        unknown.
        """
        if self.is_filter_text:
            return self._bind_text(keys, default_partition_name)
        return bind_expression(self.tree, keys, default_partition_name)

    def _bind_text(self, keys: Sequence[PartitionKey], default_partition_name: str) -> Bound:
        """MSCK identifies a partition by the texts of its values, whatever the keys' types are: `(y='1' AND m='02')`.

        So stored texts are compared, as in `MsckPartitionExpressionProxy` (Hive 3.1, 4.0), which compares names:
        `d=2020-1-1` may be dropped because its directory is gone, while `d=2020-01-01`, the same day, must stay. A
        filter that contains numbers does not have this form and compares values.
        """
        try:
            as_texts = bind(self.tree, [(name, "string") for name, _ in keys], default_partition_name)
        except FilterBindError:
            return bind(self.tree, keys, default_partition_name)
        return replace(as_texts, keys=tuple(keys))


def parse_expression(
    expression: bytes, plain_text: bool = False, limits: FilterLimits = DEFAULT_LIMITS
) -> ParsedExpression:
    """Parses a request's `expr` bytes.

    `plain_text`: the connection has set `metastore.expression.proxy` to Hive's `MsckPartitionExpressionProxy`. Raises
    `FilterSyntaxError` (or `FilterLimitError`) for a text that is not a filter. Never raises for Kryo bytes, even
    invalid ones: these are unknown.
    """
    if plain_text:
        try:
            text = expression.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FilterSyntaxError(ERROR_PREFIX + "the expression is not UTF-8") from error
        return ParsedExpression(_with_unescaped_values(parse_filter(text, limits)), is_filter_text=True)
    return ParsedExpression(_tree_of(expression), is_filter_text=False)


def _with_unescaped_values(node: tree.Predicate) -> tree.Predicate:
    """The tree with unescaped values, if MSCK sent them as in the names of directories.

    Source: `Msck.makePartExpr`, undone by `MsckPartitionExpressionProxy` (Hive 4.0): `08:30` is sent as `08%3A30`.
    """
    match node:
        case tree.And() | tree.Or():
            return replace(node, children=tuple(map(_with_unescaped_values, node.children)))
        case tree.Not():
            return replace(node, child=_with_unescaped_values(node.child))
        case tree.Comparison(operator=tree.ComparisonOperator.EQUAL):
            return replace(node, left=_unescaped(node.left), right=_unescaped(node.right))
        case _:
            return node


def _unescaped(operand: tree.Operand) -> tree.Operand:
    if isinstance(operand, tree.Constant) and isinstance(operand.value, str):
        return replace(operand, value=unescape_path_name(operand.value))
    return operand


def _tree_of(expression: bytes) -> tree.Predicate:
    try:
        return read_expression(expression, lambda root: _Translation().predicate(root, 0))
    except KryoError as error:
        _log.debug("A partition expression of %d bytes was not understood: %s", len(expression), error)
        return tree.Unknown(str(error))


class _Translation:
    """Translation of one expression. Counts nodes and texts each time they are used: objects may be shared and refer to
    each other, so that a few bytes could refer to one object a million times."""

    def __init__(self) -> None:
        limits = input_limits()
        self._nodes = 0
        self._max_nodes = limits.expression_nodes
        self._free_characters = self._max_characters = limits.expression_bytes

    def _enter(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise KryoError(f"nested more than {MAX_DEPTH} deep")
        self._nodes += 1
        self._check_nodes(0)

    def _check_nodes(self, expected: int) -> None:
        """`expected`: minimum number of further nodes."""
        if self._nodes + expected > self._max_nodes:
            raise KryoError(f"more than {self._max_nodes} nodes ({exceeded('expression_nodes')})")

    def predicate(self, node: Value, depth: int) -> tree.Predicate:
        self._enter(depth)
        name, children = _function(node)
        match name, children:
            case "OPAnd", [_, *_]:
                return tree.And(self._joined(name, children, depth))
            case "OPOr", [_, *_]:
                return tree.Or(self._joined(name, children, depth))
            case "OPNot", [child]:
                return tree.Not(self.predicate(child, depth + 1))
            case "OPTrue" | "OPFalse", [child]:
                return tree.IsTruth(self.predicate(child, depth + 1), name == "OPTrue")
            case "OPNotTrue" | "OPNotFalse", [child]:
                return tree.Not(tree.IsTruth(self.predicate(child, depth + 1), name == "OPNotTrue"))
            case "OPNull", [child]:
                return tree.IsNull(self.operand(child, depth + 1))
            case "OPNotNull", [child]:
                return tree.Not(tree.IsNull(self.operand(child, depth + 1)))
            case comparison, [left, right] if comparison in _COMPARISONS:
                return tree.Comparison(_COMPARISONS[comparison], *self._operands([left, right], depth))
            case "In", [key, *values]:
                return self._in(key, values, depth)
            case "Between", [inverted, key, lower, upper]:
                return self._between(inverted, key, lower, upper, depth)
            case "Like", [key, pattern]:
                return tree.Like(*self._operands([key, pattern], depth))
        operand = self.operand(node, depth)
        return operand if isinstance(operand, tree.Unknown) else tree.Truth(operand)

    def _joined(self, name: str, children: list[Value], depth: int) -> tuple[tree.Predicate, ...]:
        """The operands of nested ORs, or of nested ANDs: Hive's optimizer writes `a OR b OR c` as `(a OR b) OR c`."""
        joined: list[tree.Predicate] = []
        self._check_nodes(len(children))
        pending = children[::-1]
        while pending:
            node = pending.pop()
            inner, inner_children = _function(node)
            if inner == name and inner_children:
                self._enter(depth)
                self._check_nodes(len(pending) + len(inner_children))
                pending += inner_children[::-1]
            else:
                joined.append(self.predicate(node, depth + 1))
        return tuple(joined)

    def operand(self, node: Value, depth: int) -> tree.Operand:
        self._enter(depth)
        if not isinstance(node, KryoObject):
            return tree.Unknown(f"a {type(node).__name__}")
        if node.class_name == _PLAN + "ColumnDesc":
            column = node.fields["column"]
            if isinstance(column, str) and len(column) <= _LONGEST_NAME:
                return tree.Column(column)
            return tree.Unknown("a column without a name")
        if node.class_name == _PLAN + "ConstantDesc":
            return self._constant(node.fields["value"], _type_name(node))
        name, children = _function(node)
        if name == "Cast" and len(children) == 1:
            return tree.Cast(self.operand(children[0], depth + 1), _type_name(node))
        return tree.Unknown(name or node.class_name)

    def _operands(self, nodes: list[Value], depth: int) -> list[tree.Operand]:
        return [self.operand(node, depth + 1) for node in nodes]

    def _between(self, inverted: Value, key: Value, lower: Value, upper: Value, depth: int) -> tree.Predicate:
        operand, low, high = self._operands([key, lower, upper], depth)
        between = tree.Between(operand, low, high)
        match self.operand(inverted, depth + 1):
            case tree.Constant(False):
                return between
            case tree.Constant(True):
                return tree.Not(between)
        return tree.Unknown("BETWEEN without its flag")

    def _in(self, key: Value, values: list[Value], depth: int) -> tree.Predicate:
        if _function(key)[0] == "Struct":
            return self._in_structs(_function(key)[1], values, depth)
        return tree.In(self.operand(key, depth + 1), tuple(self._operands(values, depth)))

    def _in_structs(self, keys: list[Value], structs: list[Value], depth: int) -> tree.Predicate:
        """Hive compares structs as a whole: a NULL in one makes it unequal, not unknown."""
        operands = self._operands(keys, depth)
        alternatives: list[tree.Predicate] = []
        for struct in structs:
            self._enter(depth)
            values = self._struct_values(struct, depth)
            if len(values) != len(operands):
                return tree.Unknown("structs of different lengths")
            equal: list[tree.Predicate] = []
            for operand, value in zip(operands, values, strict=True):
                equal += [
                    tree.Not(tree.IsNull(operand)),
                    tree.Comparison(tree.ComparisonOperator.EQUAL, operand, value),
                ]
            alternatives.append(tree.And(tuple(equal)))
        return tree.Or(tuple(alternatives))

    def _struct_values(self, struct: Value, depth: int) -> list[tree.Operand]:
        name, children = _function(struct)
        if name == "Struct":
            return self._operands(children, depth)
        if not isinstance(struct, KryoObject) or struct.class_name != _PLAN + "ConstantDesc":
            return []
        values, type_info = struct.fields["value"], struct.fields["typeInfo"]
        types = type_info.fields.get("allStructFieldTypeInfos") if isinstance(type_info, KryoObject) else None
        if not isinstance(values, list) or not isinstance(types, list) or len(values) != len(types):
            return []
        self._check_nodes(len(values))
        self._nodes += len(values)
        return [self._constant(value, _type_name_of(type_of)) for value, type_of in zip(values, types, strict=True)]

    def _constant(self, value: Value, type_name: str) -> tree.Constant | tree.Unknown:
        literal = _literal(value)
        if isinstance(literal, tree.Unknown):
            return literal
        if isinstance(literal, str):
            self._free_characters -= len(literal)
            if self._free_characters < 0:
                setting = exceeded("expression_bytes")
                raise KryoError(f"its texts have more than {self._max_characters} characters in all uses ({setting})")
        return tree.Constant(literal, type_name)


def _function(node: Value) -> tuple[str, list[Value]]:
    """A function's name without Hive's prefixes (every cast is `Cast`) and its arguments; "" for any other node."""
    if not isinstance(node, KryoObject) or node.class_name != _PLAN + "GenericFuncDesc":
        return "", []
    function = node.fields["genericUDF"]
    # Hive 2.3 misspells the field.
    children = node.fields.get("children", node.fields.get("chidren"))
    if not isinstance(function, KryoObject) or not isinstance(children, list):
        return "", []
    name = function.class_name.removeprefix(_GENERIC)
    if name in _GENERIC_CASTS:
        return "Cast", children
    if name == "Bridge":
        bridged = function.fields["udfClassName"]
        name = bridged.removeprefix(_UDF) if isinstance(bridged, str) and len(bridged) <= _LONGEST_NAME else ""
        return ("Cast" if name in _BRIDGED_CASTS else name), children
    return ("" if name == "Like" else name), children


def _type_name(node: KryoObject) -> str:
    return _type_name_of(node.fields.get("typeInfo"))


def _type_name_of(type_info: Value) -> str:
    if not isinstance(type_info, KryoObject):
        return ""
    name, fields = type_info.fields.get("typeName"), type_info.fields
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    precision, scale, length = fields.get("precision"), fields.get("scale"), fields.get("length")
    if isinstance(precision, int) and isinstance(scale, int):
        return f"decimal({precision},{scale})"
    return f"{name.partition('(')[0]}({length})" if isinstance(length, int) else name


def _literal(value: Value) -> tree.Literal | tree.Unknown:
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    if isinstance(value, LocalTimestamp):
        return _local_date(value)
    if isinstance(value, KryoObject):
        convert = _LITERALS.get(value.class_name.rpartition(".")[2])
        if convert is not None:
            return convert(value)
    return tree.Unknown(f"a constant of {getattr(value, 'class_name', type(value).__name__)}")


def _local_date(local: LocalTimestamp) -> tree.Literal | tree.Unknown:
    """A date of Hive 2.3 is midnight in the client's time zone, which is not sent: zones are mostly between -10 and +12
    hours.

    A date that could be a day earlier in the western Pacific, or a day later in the eastern, is unknown, and so are
    timestamps.
    """
    day_ms = 86_400_000
    of_day = local.milliseconds % day_ms
    if not local.class_name.endswith("Date") or 10 * 3_600_000 <= of_day < 12 * 3_600_000:
        return tree.Unknown(f"a {local.class_name} in an unknown time zone")
    days = (local.milliseconds + day_ms // 2) // day_ms
    try:
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    except OverflowError:
        return tree.Unknown("a date beyond the calendar")


def _hive_decimal(value: KryoObject) -> tree.Literal | tree.Unknown:
    """Three groups of 16 digits, the lowest first."""
    fields = value.fields
    read = (fields.get(name) for name in ("fast0", "fast1", "fast2", "fastSignum", "fastScale"))
    numbers = [number for number in read if isinstance(number, int)]
    if len(numbers) != 5:
        return tree.Unknown("a decimal of an older Hive")
    low, middle, high, sign, scale = numbers
    if not 0 <= scale <= 38 or sign not in (-1, 0, 1) or not all(0 <= group < 10**16 for group in numbers[:3]):
        return tree.Unknown("a broken decimal")
    digits = tuple(int(digit) for digit in str(low + middle * 10**16 + high * 10**32))
    return Decimal((1 if sign < 0 else 0, digits, -scale))


def _date_time(value: KryoObject) -> tree.Literal | tree.Unknown:
    """`{date, time}`; the time consists of four numbers, or with Kryo 3 of an object with four fields."""
    local = value.fields.get("localDateTime")
    if not isinstance(local, KryoObject):
        return tree.Unknown("a broken timestamp")
    date, time = local.fields.get("date"), local.fields.get("time")
    if isinstance(time, KryoObject):
        time = [time.fields.get(name) for name in ("hour", "minute", "second", "nano")]
    if not isinstance(date, datetime.date) or not isinstance(time, list) or len(time) != 4:
        return tree.Unknown("a broken timestamp")
    hour, minute, second, nanosecond = (part if isinstance(part, int) else -1 for part in time)
    if nanosecond % 1_000:
        return tree.Unknown("a timestamp of nanoseconds")
    try:
        return datetime.datetime.combine(date, datetime.time(hour, minute, second, nanosecond // 1_000))
    except ValueError:
        return tree.Unknown("a broken timestamp")


def _text_value(value: KryoObject) -> tree.Literal | tree.Unknown:
    text = value.fields.get("value")
    return text if isinstance(text, str) else tree.Unknown("a broken text")


def _date_value(value: KryoObject) -> tree.Literal | tree.Unknown:
    date = value.fields.get("localDate")
    return date if isinstance(date, datetime.date) else tree.Unknown("a broken date")


_LITERALS: dict[str, Callable[[KryoObject], tree.Literal | tree.Unknown]] = {
    "HiveDecimal": _hive_decimal,
    "HiveVarchar": _text_value,
    "HiveChar": _text_value,
    "Date": _date_value,
    "Timestamp": _date_time,
}

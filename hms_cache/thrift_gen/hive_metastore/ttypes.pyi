# Generated from thrift_idl by tools/generate_thrift.py; do not edit.

from typing import Final

from hms_cache.thrift_gen.base import TBase, ThriftException

class PrincipalType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    USER: Final[int]
    ROLE: Final[int]
    GROUP: Final[int]

class DatabaseType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    NATIVE: Final[int]
    REMOTE: Final[int]

class SerdeType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    HIVE: Final[int]
    SCHEMA_REGISTRY: Final[int]

class ClientCapability(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    TEST_CAPABILITY: Final[int]
    INSERT_ONLY_TABLES: Final[int]

class PartitionEventType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    LOAD_DONE: Final[int]

class PartitionFilterMode(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    BY_NAMES: Final[int]
    BY_VALUES: Final[int]
    BY_EXPR: Final[int]

class FunctionType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    JAVA: Final[int]

class ResourceType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    JAR: Final[int]
    FILE: Final[int]
    ARCHIVE: Final[int]

class GrantRevokeType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    GRANT: Final[int]
    REVOKE: Final[int]

class HiveObjectType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    GLOBAL: Final[int]
    DATABASE: Final[int]
    TABLE: Final[int]
    PARTITION: Final[int]
    COLUMN: Final[int]
    DATACONNECTOR: Final[int]

class TxnState(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    COMMITTED: Final[int]
    ABORTED: Final[int]
    OPEN: Final[int]

class TxnType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    DEFAULT: Final[int]
    REPL_CREATED: Final[int]
    READ_ONLY: Final[int]
    COMPACTION: Final[int]
    MATER_VIEW_REBUILD: Final[int]
    SOFT_DELETE: Final[int]
    REBALANCE_COMPACTION: Final[int]

class DataOperationType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    SELECT: Final[int]
    INSERT: Final[int]
    UPDATE: Final[int]
    DELETE: Final[int]
    UNSET: Final[int]
    NO_TXN: Final[int]

class LockType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    SHARED_READ: Final[int]
    SHARED_WRITE: Final[int]
    EXCLUSIVE: Final[int]
    EXCL_WRITE: Final[int]

class LockLevel(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    DB: Final[int]
    TABLE: Final[int]
    PARTITION: Final[int]

class LockState(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    ACQUIRED: Final[int]
    WAITING: Final[int]
    ABORT: Final[int]
    NOT_ACQUIRED: Final[int]

class CompactionType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    MINOR: Final[int]
    MAJOR: Final[int]
    REBALANCE: Final[int]
    ABORT_TXN_CLEANUP: Final[int]
    SMART_OPTIMIZE: Final[int]
    DEFERRED_CLEANUP: Final[int]

class CompactionMetricsMetricType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    NUM_OBSOLETE_DELTAS: Final[int]
    NUM_DELTAS: Final[int]
    NUM_SMALL_DELTAS: Final[int]

class WMResourcePlanStatus(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    ACTIVE: Final[int]
    ENABLED: Final[int]
    DISABLED: Final[int]

class ScheduledQueryMaintenanceRequestType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    CREATE: Final[int]
    ALTER: Final[int]
    DROP: Final[int]

class QueryState(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    INITED: Final[int]
    EXECUTING: Final[int]
    FAILED: Final[int]
    FINISHED: Final[int]
    TIMED_OUT: Final[int]
    AUTO_DISABLED: Final[int]

class SchemaType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    HIVE: Final[int]
    AVRO: Final[int]

class SchemaCompatibility(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    NONE: Final[int]
    BACKWARD: Final[int]
    FORWARD: Final[int]
    BOTH: Final[int]

class SchemaValidation(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    LATEST: Final[int]
    ALL: Final[int]

class SchemaVersionState(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    INITIATED: Final[int]
    START_REVIEW: Final[int]
    CHANGES_REQUIRED: Final[int]
    REVIEWED: Final[int]
    ENABLED: Final[int]
    DISABLED: Final[int]
    ARCHIVED: Final[int]
    DELETED: Final[int]

class FileMetadataExprType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    ORC_SARG: Final[int]

class EventRequestType(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    INSERT: Final[int]
    UPDATE: Final[int]
    DELETE: Final[int]

class GetTablesExtRequestFields(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    ACCESS_TYPE: Final[int]
    PROCESSOR_CAPABILITIES: Final[int]
    ALL: Final[int]

class WMPoolSchedulingPolicy(TBase):
    _VALUES_TO_NAMES: Final[dict[int, str]]
    _NAMES_TO_VALUES: Final[dict[str, int]]
    FAIR: Final[int]
    FIFO: Final[int]

class AlreadyExistsException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class CompactionAbortedException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class ConfigValSecurityException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class IndexAlreadyExistsException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class InvalidInputException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class InvalidObjectException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class InvalidOperationException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class InvalidPartitionException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class MetaException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class NoSuchCompactionException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class NoSuchLockException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class NoSuchObjectException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class NoSuchTxnException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class TxnAbortedException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class TxnOpenException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class UnknownDBException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class UnknownPartitionException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class UnknownTableException(ThriftException):
    message: str
    def __init__(self, message: str | None = ...) -> None: ...

class Catalog(TBase):
    name: str
    description: str | None
    locationUri: str
    createTime: int | None
    parameters: dict[str, str] | None
    def __init__(self, name: str | None = ..., description: str | None = ..., locationUri: str | None = ..., createTime: int | None = ..., parameters: dict[str, str] | None = ...) -> None: ...

class CreateCatalogRequest(TBase):
    catalog: Catalog
    def __init__(self, catalog: Catalog | None = ...) -> None: ...

class AlterCatalogRequest(TBase):
    name: str
    newCat: Catalog
    def __init__(self, name: str | None = ..., newCat: Catalog | None = ...) -> None: ...

class GetCatalogRequest(TBase):
    name: str
    def __init__(self, name: str | None = ...) -> None: ...

class GetCatalogResponse(TBase):
    catalog: Catalog
    def __init__(self, catalog: Catalog | None = ...) -> None: ...

class GetCatalogsResponse(TBase):
    names: list[str]
    def __init__(self, names: list[str] | None = ...) -> None: ...

class DropCatalogRequest(TBase):
    name: str
    ifExists: bool | None
    def __init__(self, name: str | None = ..., ifExists: bool | None = ...) -> None: ...

class PrivilegeGrantInfo(TBase):
    privilege: str
    createTime: int
    grantor: str
    grantorType: int
    grantOption: bool
    def __init__(self, privilege: str | None = ..., createTime: int | None = ..., grantor: str | None = ..., grantorType: int | None = ..., grantOption: bool | None = ...) -> None: ...

class PrincipalPrivilegeSet(TBase):
    userPrivileges: dict[str, list[PrivilegeGrantInfo]]
    groupPrivileges: dict[str, list[PrivilegeGrantInfo]]
    rolePrivileges: dict[str, list[PrivilegeGrantInfo]]
    def __init__(self, userPrivileges: dict[str, list[PrivilegeGrantInfo]] | None = ..., groupPrivileges: dict[str, list[PrivilegeGrantInfo]] | None = ..., rolePrivileges: dict[str, list[PrivilegeGrantInfo]] | None = ...) -> None: ...

class Database(TBase):
    name: str
    description: str
    locationUri: str
    parameters: dict[str, str]
    privileges: PrincipalPrivilegeSet | None
    ownerName: str | None
    ownerType: int | None
    catalogName: str | None
    createTime: int | None
    managedLocationUri: str | None
    type: int | None
    connector_name: str | None
    remote_dbname: str | None
    def __init__(self, name: str | None = ..., description: str | None = ..., locationUri: str | None = ..., parameters: dict[str, str] | None = ..., privileges: PrincipalPrivilegeSet | None = ..., ownerName: str | None = ..., ownerType: int | None = ..., catalogName: str | None = ..., createTime: int | None = ..., managedLocationUri: str | None = ..., type: int | None = ..., connector_name: str | None = ..., remote_dbname: str | None = ...) -> None: ...

class CreateDatabaseRequest(TBase):
    databaseName: str
    description: str | None
    locationUri: str | None
    parameters: dict[str, str] | None
    privileges: PrincipalPrivilegeSet | None
    ownerName: str | None
    ownerType: int | None
    catalogName: str | None
    createTime: int | None
    managedLocationUri: str | None
    type: int | None
    dataConnectorName: str | None
    remote_dbname: str | None
    def __init__(self, databaseName: str | None = ..., description: str | None = ..., locationUri: str | None = ..., parameters: dict[str, str] | None = ..., privileges: PrincipalPrivilegeSet | None = ..., ownerName: str | None = ..., ownerType: int | None = ..., catalogName: str | None = ..., createTime: int | None = ..., managedLocationUri: str | None = ..., type: int | None = ..., dataConnectorName: str | None = ..., remote_dbname: str | None = ...) -> None: ...

class GetDatabaseRequest(TBase):
    name: str | None
    catalogName: str | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    def __init__(self, name: str | None = ..., catalogName: str | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ...) -> None: ...

class DropDatabaseRequest(TBase):
    name: str
    catalogName: str | None
    ignoreUnknownDb: bool
    deleteData: bool
    cascade: bool
    softDelete: bool
    txnId: int
    deleteManagedDir: bool
    id: str | None
    asyncDrop: bool | None
    cancel: bool | None
    def __init__(self, name: str | None = ..., catalogName: str | None = ..., ignoreUnknownDb: bool | None = ..., deleteData: bool | None = ..., cascade: bool | None = ..., softDelete: bool | None = ..., txnId: int | None = ..., deleteManagedDir: bool | None = ..., id: str | None = ..., asyncDrop: bool | None = ..., cancel: bool | None = ...) -> None: ...

class AsyncOperationResp(TBase):
    id: str
    message: str | None
    finished: bool | None
    def __init__(self, id: str | None = ..., message: str | None = ..., finished: bool | None = ...) -> None: ...

class GetDatabaseObjectsRequest(TBase):
    catalogName: str | None
    pattern: str | None
    def __init__(self, catalogName: str | None = ..., pattern: str | None = ...) -> None: ...

class GetDatabaseObjectsResponse(TBase):
    databases: list[Database]
    def __init__(self, databases: list[Database] | None = ...) -> None: ...

class AlterDatabaseRequest(TBase):
    oldDbName: str
    newDb: Database
    def __init__(self, oldDbName: str | None = ..., newDb: Database | None = ...) -> None: ...

class FieldSchema(TBase):
    name: str
    type: str
    comment: str
    def __init__(self, name: str | None = ..., type: str | None = ..., comment: str | None = ...) -> None: ...

class EnvironmentContext(TBase):
    properties: dict[str, str]
    def __init__(self, properties: dict[str, str] | None = ...) -> None: ...

class GetFieldsRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    envContext: EnvironmentContext | None
    validWriteIdList: str | None
    id: int
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., envContext: EnvironmentContext | None = ..., validWriteIdList: str | None = ..., id: int | None = ...) -> None: ...

class GetFieldsResponse(TBase):
    fields: list[FieldSchema]
    def __init__(self, fields: list[FieldSchema] | None = ...) -> None: ...

class GetSchemaRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    envContext: EnvironmentContext | None
    validWriteIdList: str | None
    id: int
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., envContext: EnvironmentContext | None = ..., validWriteIdList: str | None = ..., id: int | None = ...) -> None: ...

class GetSchemaResponse(TBase):
    fields: list[FieldSchema]
    def __init__(self, fields: list[FieldSchema] | None = ...) -> None: ...

class SerDeInfo(TBase):
    name: str
    serializationLib: str
    parameters: dict[str, str]
    description: str | None
    serializerClass: str | None
    deserializerClass: str | None
    serdeType: int | None
    def __init__(self, name: str | None = ..., serializationLib: str | None = ..., parameters: dict[str, str] | None = ..., description: str | None = ..., serializerClass: str | None = ..., deserializerClass: str | None = ..., serdeType: int | None = ...) -> None: ...

class Order(TBase):
    col: str
    order: int
    def __init__(self, col: str | None = ..., order: int | None = ...) -> None: ...

class SkewedInfo(TBase):
    skewedColNames: list[str]
    skewedColValues: list[list[str]]
    skewedColValueLocationMaps: dict[tuple[str, ...], str]
    def __init__(self, skewedColNames: list[str] | None = ..., skewedColValues: list[list[str]] | None = ..., skewedColValueLocationMaps: dict[tuple[str, ...], str] | None = ...) -> None: ...

class StorageDescriptor(TBase):
    cols: list[FieldSchema]
    location: str
    inputFormat: str
    outputFormat: str
    compressed: bool
    numBuckets: int
    serdeInfo: SerDeInfo
    bucketCols: list[str]
    sortCols: list[Order]
    parameters: dict[str, str]
    skewedInfo: SkewedInfo | None
    storedAsSubDirectories: bool | None
    def __init__(self, cols: list[FieldSchema] | None = ..., location: str | None = ..., inputFormat: str | None = ..., outputFormat: str | None = ..., compressed: bool | None = ..., numBuckets: int | None = ..., serdeInfo: SerDeInfo | None = ..., bucketCols: list[str] | None = ..., sortCols: list[Order] | None = ..., parameters: dict[str, str] | None = ..., skewedInfo: SkewedInfo | None = ..., storedAsSubDirectories: bool | None = ...) -> None: ...

class SourceTable(TBase):
    table: Table
    insertedCount: int
    updatedCount: int
    deletedCount: int
    def __init__(self, table: Table | None = ..., insertedCount: int | None = ..., updatedCount: int | None = ..., deletedCount: int | None = ...) -> None: ...

class CreationMetadata(TBase):
    catName: str
    dbName: str
    tblName: str
    tablesUsed: set[str]
    validTxnList: str | None
    materializationTime: int | None
    sourceTables: list[SourceTable]
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., tablesUsed: set[str] | None = ..., validTxnList: str | None = ..., materializationTime: int | None = ..., sourceTables: list[SourceTable] | None = ...) -> None: ...

class ColumnStatisticsDesc(TBase):
    isTblLevel: bool
    dbName: str
    tableName: str
    partName: str
    lastAnalyzed: int
    catName: str
    def __init__(self, isTblLevel: bool | None = ..., dbName: str | None = ..., tableName: str | None = ..., partName: str | None = ..., lastAnalyzed: int | None = ..., catName: str | None = ...) -> None: ...

class BooleanColumnStatsData(TBase):
    numTrues: int
    numFalses: int
    numNulls: int
    bitVectors: bytes | None
    def __init__(self, numTrues: int | None = ..., numFalses: int | None = ..., numNulls: int | None = ..., bitVectors: bytes | None = ...) -> None: ...

class LongColumnStatsData(TBase):
    lowValue: int | None
    highValue: int | None
    numNulls: int
    numDVs: int
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(self, lowValue: int | None = ..., highValue: int | None = ..., numNulls: int | None = ..., numDVs: int | None = ..., bitVectors: bytes | None = ..., histogram: bytes | None = ...) -> None: ...

class DoubleColumnStatsData(TBase):
    lowValue: float | None
    highValue: float | None
    numNulls: int
    numDVs: int
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(self, lowValue: float | None = ..., highValue: float | None = ..., numNulls: int | None = ..., numDVs: int | None = ..., bitVectors: bytes | None = ..., histogram: bytes | None = ...) -> None: ...

class StringColumnStatsData(TBase):
    maxColLen: int
    avgColLen: float
    numNulls: int
    numDVs: int
    bitVectors: bytes | None
    def __init__(self, maxColLen: int | None = ..., avgColLen: float | None = ..., numNulls: int | None = ..., numDVs: int | None = ..., bitVectors: bytes | None = ...) -> None: ...

class BinaryColumnStatsData(TBase):
    maxColLen: int
    avgColLen: float
    numNulls: int
    bitVectors: bytes | None
    def __init__(self, maxColLen: int | None = ..., avgColLen: float | None = ..., numNulls: int | None = ..., bitVectors: bytes | None = ...) -> None: ...

class Decimal(TBase):
    unscaled: bytes
    scale: int
    def __init__(self, unscaled: bytes | None = ..., scale: int | None = ...) -> None: ...

class DecimalColumnStatsData(TBase):
    lowValue: Decimal | None
    highValue: Decimal | None
    numNulls: int
    numDVs: int
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(self, lowValue: Decimal | None = ..., highValue: Decimal | None = ..., numNulls: int | None = ..., numDVs: int | None = ..., bitVectors: bytes | None = ..., histogram: bytes | None = ...) -> None: ...

class Date(TBase):
    daysSinceEpoch: int
    def __init__(self, daysSinceEpoch: int | None = ...) -> None: ...

class DateColumnStatsData(TBase):
    lowValue: Date | None
    highValue: Date | None
    numNulls: int
    numDVs: int
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(self, lowValue: Date | None = ..., highValue: Date | None = ..., numNulls: int | None = ..., numDVs: int | None = ..., bitVectors: bytes | None = ..., histogram: bytes | None = ...) -> None: ...

class Timestamp(TBase):
    secondsSinceEpoch: int
    def __init__(self, secondsSinceEpoch: int | None = ...) -> None: ...

class TimestampColumnStatsData(TBase):
    lowValue: Timestamp | None
    highValue: Timestamp | None
    numNulls: int
    numDVs: int
    bitVectors: bytes | None
    histogram: bytes | None
    def __init__(self, lowValue: Timestamp | None = ..., highValue: Timestamp | None = ..., numNulls: int | None = ..., numDVs: int | None = ..., bitVectors: bytes | None = ..., histogram: bytes | None = ...) -> None: ...

class ColumnStatisticsData(TBase):
    booleanStats: BooleanColumnStatsData | None
    longStats: LongColumnStatsData | None
    doubleStats: DoubleColumnStatsData | None
    stringStats: StringColumnStatsData | None
    binaryStats: BinaryColumnStatsData | None
    decimalStats: DecimalColumnStatsData | None
    dateStats: DateColumnStatsData | None
    timestampStats: TimestampColumnStatsData | None
    def __init__(self, booleanStats: BooleanColumnStatsData | None = ..., longStats: LongColumnStatsData | None = ..., doubleStats: DoubleColumnStatsData | None = ..., stringStats: StringColumnStatsData | None = ..., binaryStats: BinaryColumnStatsData | None = ..., decimalStats: DecimalColumnStatsData | None = ..., dateStats: DateColumnStatsData | None = ..., timestampStats: TimestampColumnStatsData | None = ...) -> None: ...

class ColumnStatisticsObj(TBase):
    colName: str
    colType: str
    statsData: ColumnStatisticsData
    def __init__(self, colName: str | None = ..., colType: str | None = ..., statsData: ColumnStatisticsData | None = ...) -> None: ...

class ColumnStatistics(TBase):
    statsDesc: ColumnStatisticsDesc
    statsObj: list[ColumnStatisticsObj]
    isStatsCompliant: bool | None
    engine: str
    def __init__(self, statsDesc: ColumnStatisticsDesc | None = ..., statsObj: list[ColumnStatisticsObj] | None = ..., isStatsCompliant: bool | None = ..., engine: str | None = ...) -> None: ...

class FileMetadata(TBase):
    type: int
    version: int
    data: list[bytes]
    def __init__(self, type: int | None = ..., version: int | None = ..., data: list[bytes] | None = ...) -> None: ...

class ObjectDictionary(TBase):
    values: dict[str, list[bytes]]
    def __init__(self, values: dict[str, list[bytes]] | None = ...) -> None: ...

class Table(TBase):
    tableName: str
    dbName: str
    owner: str
    createTime: int
    lastAccessTime: int
    retention: int
    sd: StorageDescriptor
    partitionKeys: list[FieldSchema]
    parameters: dict[str, str]
    viewOriginalText: str
    viewExpandedText: str
    tableType: str | None
    privileges: PrincipalPrivilegeSet | None
    temporary: bool | None
    rewriteEnabled: bool | None
    creationMetadata: CreationMetadata | None
    catName: str
    ownerType: int
    writeId: int
    isStatsCompliant: bool | None
    colStats: ColumnStatistics | None
    accessType: int | None
    requiredReadCapabilities: list[str] | None
    requiredWriteCapabilities: list[str] | None
    id: int
    fileMetadata: FileMetadata | None
    dictionary: ObjectDictionary | None
    txnId: int | None
    def __init__(self, tableName: str | None = ..., dbName: str | None = ..., owner: str | None = ..., createTime: int | None = ..., lastAccessTime: int | None = ..., retention: int | None = ..., sd: StorageDescriptor | None = ..., partitionKeys: list[FieldSchema] | None = ..., parameters: dict[str, str] | None = ..., viewOriginalText: str | None = ..., viewExpandedText: str | None = ..., tableType: str | None = ..., privileges: PrincipalPrivilegeSet | None = ..., temporary: bool | None = ..., rewriteEnabled: bool | None = ..., creationMetadata: CreationMetadata | None = ..., catName: str | None = ..., ownerType: int | None = ..., writeId: int | None = ..., isStatsCompliant: bool | None = ..., colStats: ColumnStatistics | None = ..., accessType: int | None = ..., requiredReadCapabilities: list[str] | None = ..., requiredWriteCapabilities: list[str] | None = ..., id: int | None = ..., fileMetadata: FileMetadata | None = ..., dictionary: ObjectDictionary | None = ..., txnId: int | None = ...) -> None: ...

class SQLPrimaryKey(TBase):
    table_db: str
    table_name: str
    column_name: str
    key_seq: int
    pk_name: str
    enable_cstr: bool
    validate_cstr: bool
    rely_cstr: bool
    catName: str
    def __init__(self, table_db: str | None = ..., table_name: str | None = ..., column_name: str | None = ..., key_seq: int | None = ..., pk_name: str | None = ..., enable_cstr: bool | None = ..., validate_cstr: bool | None = ..., rely_cstr: bool | None = ..., catName: str | None = ...) -> None: ...

class SQLForeignKey(TBase):
    pktable_db: str
    pktable_name: str
    pkcolumn_name: str
    fktable_db: str
    fktable_name: str
    fkcolumn_name: str
    key_seq: int
    update_rule: int
    delete_rule: int
    fk_name: str
    pk_name: str
    enable_cstr: bool
    validate_cstr: bool
    rely_cstr: bool
    catName: str
    def __init__(self, pktable_db: str | None = ..., pktable_name: str | None = ..., pkcolumn_name: str | None = ..., fktable_db: str | None = ..., fktable_name: str | None = ..., fkcolumn_name: str | None = ..., key_seq: int | None = ..., update_rule: int | None = ..., delete_rule: int | None = ..., fk_name: str | None = ..., pk_name: str | None = ..., enable_cstr: bool | None = ..., validate_cstr: bool | None = ..., rely_cstr: bool | None = ..., catName: str | None = ...) -> None: ...

class SQLUniqueConstraint(TBase):
    catName: str
    table_db: str
    table_name: str
    column_name: str
    key_seq: int
    uk_name: str
    enable_cstr: bool
    validate_cstr: bool
    rely_cstr: bool
    def __init__(self, catName: str | None = ..., table_db: str | None = ..., table_name: str | None = ..., column_name: str | None = ..., key_seq: int | None = ..., uk_name: str | None = ..., enable_cstr: bool | None = ..., validate_cstr: bool | None = ..., rely_cstr: bool | None = ...) -> None: ...

class SQLNotNullConstraint(TBase):
    catName: str
    table_db: str
    table_name: str
    column_name: str
    nn_name: str
    enable_cstr: bool
    validate_cstr: bool
    rely_cstr: bool
    def __init__(self, catName: str | None = ..., table_db: str | None = ..., table_name: str | None = ..., column_name: str | None = ..., nn_name: str | None = ..., enable_cstr: bool | None = ..., validate_cstr: bool | None = ..., rely_cstr: bool | None = ...) -> None: ...

class SQLDefaultConstraint(TBase):
    catName: str
    table_db: str
    table_name: str
    column_name: str
    default_value: str
    dc_name: str
    enable_cstr: bool
    validate_cstr: bool
    rely_cstr: bool
    def __init__(self, catName: str | None = ..., table_db: str | None = ..., table_name: str | None = ..., column_name: str | None = ..., default_value: str | None = ..., dc_name: str | None = ..., enable_cstr: bool | None = ..., validate_cstr: bool | None = ..., rely_cstr: bool | None = ...) -> None: ...

class SQLCheckConstraint(TBase):
    catName: str
    table_db: str
    table_name: str
    column_name: str
    check_expression: str
    dc_name: str
    enable_cstr: bool
    validate_cstr: bool
    rely_cstr: bool
    def __init__(self, catName: str | None = ..., table_db: str | None = ..., table_name: str | None = ..., column_name: str | None = ..., check_expression: str | None = ..., dc_name: str | None = ..., enable_cstr: bool | None = ..., validate_cstr: bool | None = ..., rely_cstr: bool | None = ...) -> None: ...

class CreateTableRequest(TBase):
    table: Table
    envContext: EnvironmentContext | None
    primaryKeys: list[SQLPrimaryKey] | None
    foreignKeys: list[SQLForeignKey] | None
    uniqueConstraints: list[SQLUniqueConstraint] | None
    notNullConstraints: list[SQLNotNullConstraint] | None
    defaultConstraints: list[SQLDefaultConstraint] | None
    checkConstraints: list[SQLCheckConstraint] | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    def __init__(self, table: Table | None = ..., envContext: EnvironmentContext | None = ..., primaryKeys: list[SQLPrimaryKey] | None = ..., foreignKeys: list[SQLForeignKey] | None = ..., uniqueConstraints: list[SQLUniqueConstraint] | None = ..., notNullConstraints: list[SQLNotNullConstraint] | None = ..., defaultConstraints: list[SQLDefaultConstraint] | None = ..., checkConstraints: list[SQLCheckConstraint] | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ...) -> None: ...

class DropTableRequest(TBase):
    catalogName: str | None
    dbName: str
    tableName: str
    deleteData: bool | None
    envContext: EnvironmentContext | None
    dropPartitions: bool | None
    id: str | None
    asyncDrop: bool | None
    cancel: bool | None
    def __init__(self, catalogName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., deleteData: bool | None = ..., envContext: EnvironmentContext | None = ..., dropPartitions: bool | None = ..., id: str | None = ..., asyncDrop: bool | None = ..., cancel: bool | None = ...) -> None: ...

class TruncateTableRequest(TBase):
    dbName: str
    tableName: str
    partNames: list[str] | None
    writeId: int
    validWriteIdList: str | None
    environmentContext: EnvironmentContext | None
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., partNames: list[str] | None = ..., writeId: int | None = ..., validWriteIdList: str | None = ..., environmentContext: EnvironmentContext | None = ...) -> None: ...

class TruncateTableResponse(TBase):
    def __init__(self) -> None: ...

class TableMeta(TBase):
    dbName: str
    tableName: str
    tableType: str
    comments: str | None
    catName: str | None
    ownerName: str | None
    ownerType: int | None
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., tableType: str | None = ..., comments: str | None = ..., catName: str | None = ..., ownerName: str | None = ..., ownerType: int | None = ...) -> None: ...

class GetTablesExtRequest(TBase):
    catalog: str
    database: str
    tableNamePattern: str
    requestedFields: int
    limit: int | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    def __init__(self, catalog: str | None = ..., database: str | None = ..., tableNamePattern: str | None = ..., requestedFields: int | None = ..., limit: int | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ...) -> None: ...

class ExtendedTableInfo(TBase):
    tblName: str
    accessType: int | None
    requiredReadCapabilities: list[str] | None
    requiredWriteCapabilities: list[str] | None
    def __init__(self, tblName: str | None = ..., accessType: int | None = ..., requiredReadCapabilities: list[str] | None = ..., requiredWriteCapabilities: list[str] | None = ...) -> None: ...

class ClientCapabilities(TBase):
    values: list[int]
    def __init__(self, values: list[int] | None = ...) -> None: ...

class GetTableRequest(TBase):
    dbName: str
    tblName: str
    capabilities: ClientCapabilities | None
    catName: str | None
    validWriteIdList: str | None
    getColumnStats: bool | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    engine: str
    id: int
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., capabilities: ClientCapabilities | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., getColumnStats: bool | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ..., engine: str | None = ..., id: int | None = ...) -> None: ...

class GetTableResult(TBase):
    table: Table
    isStatsCompliant: bool | None
    def __init__(self, table: Table | None = ..., isStatsCompliant: bool | None = ...) -> None: ...

class GetProjectionsSpec(TBase):
    fieldList: list[str]
    includeParamKeyPattern: str
    excludeParamKeyPattern: str
    def __init__(self, fieldList: list[str] | None = ..., includeParamKeyPattern: str | None = ..., excludeParamKeyPattern: str | None = ...) -> None: ...

class GetTablesRequest(TBase):
    dbName: str
    tblNames: list[str] | None
    capabilities: ClientCapabilities | None
    catName: str | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    projectionSpec: GetProjectionsSpec | None
    tablesPattern: str | None
    def __init__(self, dbName: str | None = ..., tblNames: list[str] | None = ..., capabilities: ClientCapabilities | None = ..., catName: str | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ..., projectionSpec: GetProjectionsSpec | None = ..., tablesPattern: str | None = ...) -> None: ...

class GetTablesResult(TBase):
    tables: list[Table]
    def __init__(self, tables: list[Table] | None = ...) -> None: ...

class Materialization(TBase):
    sourceTablesUpdateDeleteModified: bool
    sourceTablesCompacted: bool
    def __init__(self, sourceTablesUpdateDeleteModified: bool | None = ..., sourceTablesCompacted: bool | None = ...) -> None: ...

class AlterTableRequest(TBase):
    catName: str | None
    dbName: str
    tableName: str
    table: Table
    environmentContext: EnvironmentContext | None
    writeId: int
    validWriteIdList: str | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    expectedParameterKey: str | None
    expectedParameterValue: str | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., table: Table | None = ..., environmentContext: EnvironmentContext | None = ..., writeId: int | None = ..., validWriteIdList: str | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ..., expectedParameterKey: str | None = ..., expectedParameterValue: str | None = ...) -> None: ...

class AlterTableResponse(TBase):
    def __init__(self) -> None: ...

class TableParamsUpdate(TBase):
    cat_name: str | None
    db_name: str
    table_name: str
    params: dict[str, str]
    expected_param_key: str | None
    expected_param_value: str | None
    def __init__(self, cat_name: str | None = ..., db_name: str | None = ..., table_name: str | None = ..., params: dict[str, str] | None = ..., expected_param_key: str | None = ..., expected_param_value: str | None = ...) -> None: ...

class Partition(TBase):
    values: list[str]
    dbName: str
    tableName: str
    createTime: int
    lastAccessTime: int
    sd: StorageDescriptor
    parameters: dict[str, str]
    privileges: PrincipalPrivilegeSet | None
    catName: str
    writeId: int
    isStatsCompliant: bool | None
    colStats: ColumnStatistics | None
    fileMetadata: FileMetadata | None
    def __init__(self, values: list[str] | None = ..., dbName: str | None = ..., tableName: str | None = ..., createTime: int | None = ..., lastAccessTime: int | None = ..., sd: StorageDescriptor | None = ..., parameters: dict[str, str] | None = ..., privileges: PrincipalPrivilegeSet | None = ..., catName: str | None = ..., writeId: int | None = ..., isStatsCompliant: bool | None = ..., colStats: ColumnStatistics | None = ..., fileMetadata: FileMetadata | None = ...) -> None: ...

class PartitionWithoutSD(TBase):
    values: list[str]
    createTime: int
    lastAccessTime: int
    relativePath: str
    parameters: dict[str, str]
    privileges: PrincipalPrivilegeSet | None
    def __init__(self, values: list[str] | None = ..., createTime: int | None = ..., lastAccessTime: int | None = ..., relativePath: str | None = ..., parameters: dict[str, str] | None = ..., privileges: PrincipalPrivilegeSet | None = ...) -> None: ...

class PartitionSpecWithSharedSD(TBase):
    partitions: list[PartitionWithoutSD]
    sd: StorageDescriptor
    def __init__(self, partitions: list[PartitionWithoutSD] | None = ..., sd: StorageDescriptor | None = ...) -> None: ...

class PartitionListComposingSpec(TBase):
    partitions: list[Partition]
    def __init__(self, partitions: list[Partition] | None = ...) -> None: ...

class PartitionSpec(TBase):
    dbName: str
    tableName: str
    rootPath: str
    sharedSDPartitionSpec: PartitionSpecWithSharedSD | None
    partitionList: PartitionListComposingSpec | None
    catName: str
    writeId: int
    isStatsCompliant: bool | None
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., rootPath: str | None = ..., sharedSDPartitionSpec: PartitionSpecWithSharedSD | None = ..., partitionList: PartitionListComposingSpec | None = ..., catName: str | None = ..., writeId: int | None = ..., isStatsCompliant: bool | None = ...) -> None: ...

class AddPartitionsRequest(TBase):
    dbName: str
    tblName: str
    parts: list[Partition]
    ifNotExists: bool
    needResult: bool
    catName: str | None
    validWriteIdList: str | None
    skipColumnSchemaForPartition: bool | None
    partitionColSchema: list[FieldSchema] | None
    environmentContext: EnvironmentContext | None
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., parts: list[Partition] | None = ..., ifNotExists: bool | None = ..., needResult: bool | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., skipColumnSchemaForPartition: bool | None = ..., partitionColSchema: list[FieldSchema] | None = ..., environmentContext: EnvironmentContext | None = ...) -> None: ...

class AddPartitionsResult(TBase):
    partitions: list[Partition] | None
    isStatsCompliant: bool | None
    partitionColSchema: list[FieldSchema] | None
    def __init__(self, partitions: list[Partition] | None = ..., isStatsCompliant: bool | None = ..., partitionColSchema: list[FieldSchema] | None = ...) -> None: ...

class AppendPartitionsRequest(TBase):
    catalogName: str | None
    dbName: str
    tableName: str
    name: str | None
    partVals: list[str] | None
    environmentContext: EnvironmentContext | None
    def __init__(self, catalogName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., name: str | None = ..., partVals: list[str] | None = ..., environmentContext: EnvironmentContext | None = ...) -> None: ...

class DropPartitionRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    partName: str | None
    partVals: list[str] | None
    deleteData: bool | None
    environmentContext: EnvironmentContext | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., partName: str | None = ..., partVals: list[str] | None = ..., deleteData: bool | None = ..., environmentContext: EnvironmentContext | None = ...) -> None: ...

class DropPartitionsExpr(TBase):
    expr: bytes
    partArchiveLevel: int | None
    def __init__(self, expr: bytes | None = ..., partArchiveLevel: int | None = ...) -> None: ...

class RequestPartsSpec(TBase):
    names: list[str] | None
    exprs: list[DropPartitionsExpr] | None
    def __init__(self, names: list[str] | None = ..., exprs: list[DropPartitionsExpr] | None = ...) -> None: ...

class DropPartitionsRequest(TBase):
    dbName: str
    tblName: str
    parts: RequestPartsSpec
    deleteData: bool | None
    ifExists: bool | None
    ignoreProtection: bool | None
    environmentContext: EnvironmentContext | None
    needResult: bool
    catName: str | None
    skipColumnSchemaForPartition: bool | None
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., parts: RequestPartsSpec | None = ..., deleteData: bool | None = ..., ifExists: bool | None = ..., ignoreProtection: bool | None = ..., environmentContext: EnvironmentContext | None = ..., needResult: bool | None = ..., catName: str | None = ..., skipColumnSchemaForPartition: bool | None = ...) -> None: ...

class DropPartitionsResult(TBase):
    partitions: list[Partition] | None
    def __init__(self, partitions: list[Partition] | None = ...) -> None: ...

class GetPartitionRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    partVals: list[str]
    validWriteIdList: str | None
    id: int
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., partVals: list[str] | None = ..., validWriteIdList: str | None = ..., id: int | None = ...) -> None: ...

class GetPartitionResponse(TBase):
    partition: Partition
    def __init__(self, partition: Partition | None = ...) -> None: ...

class PartitionsRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    maxParts: int
    validWriteIdList: str | None
    id: int
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., maxParts: int | None = ..., validWriteIdList: str | None = ..., id: int | None = ..., skipColumnSchemaForPartition: bool | None = ..., includeParamKeyPattern: str | None = ..., excludeParamKeyPattern: str | None = ...) -> None: ...

class PartitionsResponse(TBase):
    partitions: list[Partition]
    def __init__(self, partitions: list[Partition] | None = ...) -> None: ...

class PartitionValuesRequest(TBase):
    dbName: str
    tblName: str
    partitionKeys: list[FieldSchema]
    applyDistinct: bool
    filter: str | None
    partitionOrder: list[FieldSchema] | None
    ascending: bool
    maxParts: int
    catName: str | None
    validWriteIdList: str | None
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., partitionKeys: list[FieldSchema] | None = ..., applyDistinct: bool | None = ..., filter: str | None = ..., partitionOrder: list[FieldSchema] | None = ..., ascending: bool | None = ..., maxParts: int | None = ..., catName: str | None = ..., validWriteIdList: str | None = ...) -> None: ...

class PartitionValuesRow(TBase):
    row: list[str]
    def __init__(self, row: list[str] | None = ...) -> None: ...

class PartitionValuesResponse(TBase):
    partitionValues: list[PartitionValuesRow]
    def __init__(self, partitionValues: list[PartitionValuesRow] | None = ...) -> None: ...

class GetPartitionsPsWithAuthRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    partVals: list[str] | None
    maxParts: int
    userName: str | None
    groupNames: list[str] | None
    validWriteIdList: str | None
    id: int
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    partNames: list[str] | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., partVals: list[str] | None = ..., maxParts: int | None = ..., userName: str | None = ..., groupNames: list[str] | None = ..., validWriteIdList: str | None = ..., id: int | None = ..., skipColumnSchemaForPartition: bool | None = ..., includeParamKeyPattern: str | None = ..., excludeParamKeyPattern: str | None = ..., partNames: list[str] | None = ...) -> None: ...

class GetPartitionsPsWithAuthResponse(TBase):
    partitions: list[Partition]
    def __init__(self, partitions: list[Partition] | None = ...) -> None: ...

class GetPartitionNamesPsRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    partValues: list[str] | None
    maxParts: int
    validWriteIdList: str | None
    id: int
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., partValues: list[str] | None = ..., maxParts: int | None = ..., validWriteIdList: str | None = ..., id: int | None = ...) -> None: ...

class GetPartitionNamesPsResponse(TBase):
    names: list[str]
    def __init__(self, names: list[str] | None = ...) -> None: ...

class PartitionsByExprRequest(TBase):
    dbName: str
    tblName: str
    expr: bytes
    defaultPartitionName: str | None
    maxParts: int
    catName: str | None
    order: str | None
    validWriteIdList: str | None
    id: int
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., expr: bytes | None = ..., defaultPartitionName: str | None = ..., maxParts: int | None = ..., catName: str | None = ..., order: str | None = ..., validWriteIdList: str | None = ..., id: int | None = ..., skipColumnSchemaForPartition: bool | None = ..., includeParamKeyPattern: str | None = ..., excludeParamKeyPattern: str | None = ...) -> None: ...

class GetPartitionsByFilterRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    filter: str
    maxParts: int
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., filter: str | None = ..., maxParts: int | None = ..., skipColumnSchemaForPartition: bool | None = ..., includeParamKeyPattern: str | None = ..., excludeParamKeyPattern: str | None = ...) -> None: ...

class PartitionsByExprResult(TBase):
    partitions: list[Partition]
    hasUnknownPartitions: bool
    def __init__(self, partitions: list[Partition] | None = ..., hasUnknownPartitions: bool | None = ...) -> None: ...

class PartitionsSpecByExprResult(TBase):
    partitionsSpec: list[PartitionSpec]
    hasUnknownPartitions: bool
    def __init__(self, partitionsSpec: list[PartitionSpec] | None = ..., hasUnknownPartitions: bool | None = ...) -> None: ...

class GetPartitionsByNamesRequest(TBase):
    db_name: str
    tbl_name: str
    names: list[str] | None
    get_col_stats: bool | None
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    engine: str
    validWriteIdList: str | None
    getFileMetadata: bool | None
    id: int
    skipColumnSchemaForPartition: bool | None
    includeParamKeyPattern: str | None
    excludeParamKeyPattern: str | None
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., names: list[str] | None = ..., get_col_stats: bool | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ..., engine: str | None = ..., validWriteIdList: str | None = ..., getFileMetadata: bool | None = ..., id: int | None = ..., skipColumnSchemaForPartition: bool | None = ..., includeParamKeyPattern: str | None = ..., excludeParamKeyPattern: str | None = ...) -> None: ...

class GetPartitionsByNamesResult(TBase):
    partitions: list[Partition]
    dictionary: ObjectDictionary | None
    def __init__(self, partitions: list[Partition] | None = ..., dictionary: ObjectDictionary | None = ...) -> None: ...

class AlterPartitionsRequest(TBase):
    catName: str | None
    dbName: str
    tableName: str
    partitions: list[Partition]
    environmentContext: EnvironmentContext | None
    writeId: int
    validWriteIdList: str | None
    skipColumnSchemaForPartition: bool | None
    partitionColSchema: list[FieldSchema] | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., partitions: list[Partition] | None = ..., environmentContext: EnvironmentContext | None = ..., writeId: int | None = ..., validWriteIdList: str | None = ..., skipColumnSchemaForPartition: bool | None = ..., partitionColSchema: list[FieldSchema] | None = ...) -> None: ...

class AlterPartitionsResponse(TBase):
    def __init__(self) -> None: ...

class RenamePartitionRequest(TBase):
    catName: str | None
    dbName: str
    tableName: str
    partVals: list[str]
    newPart: Partition
    validWriteIdList: str | None
    txnId: int | None
    clonePart: bool | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., partVals: list[str] | None = ..., newPart: Partition | None = ..., validWriteIdList: str | None = ..., txnId: int | None = ..., clonePart: bool | None = ...) -> None: ...

class RenamePartitionResponse(TBase):
    def __init__(self) -> None: ...

class GetPartitionsFilterSpec(TBase):
    filterMode: int | None
    filters: list[str] | None
    def __init__(self, filterMode: int | None = ..., filters: list[str] | None = ...) -> None: ...

class GetPartitionsRequest(TBase):
    catName: str | None
    dbName: str
    tblName: str
    withAuth: bool | None
    user: str | None
    groupNames: list[str] | None
    projectionSpec: GetProjectionsSpec
    filterSpec: GetPartitionsFilterSpec
    processorCapabilities: list[str] | None
    processorIdentifier: str | None
    validWriteIdList: str | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tblName: str | None = ..., withAuth: bool | None = ..., user: str | None = ..., groupNames: list[str] | None = ..., projectionSpec: GetProjectionsSpec | None = ..., filterSpec: GetPartitionsFilterSpec | None = ..., processorCapabilities: list[str] | None = ..., processorIdentifier: str | None = ..., validWriteIdList: str | None = ...) -> None: ...

class GetPartitionsResponse(TBase):
    partitionSpec: list[PartitionSpec]
    def __init__(self, partitionSpec: list[PartitionSpec] | None = ...) -> None: ...

class SetPartitionsStatsRequest(TBase):
    colStats: list[ColumnStatistics]
    needMerge: bool | None
    writeId: int
    validWriteIdList: str | None
    engine: str
    def __init__(self, colStats: list[ColumnStatistics] | None = ..., needMerge: bool | None = ..., writeId: int | None = ..., validWriteIdList: str | None = ..., engine: str | None = ...) -> None: ...

class SetPartitionsStatsResponse(TBase):
    result: bool
    def __init__(self, result: bool | None = ...) -> None: ...

class UpdateTransactionalStatsRequest(TBase):
    tableId: int
    insertCount: int
    updatedCount: int
    deletedCount: int
    def __init__(self, tableId: int | None = ..., insertCount: int | None = ..., updatedCount: int | None = ..., deletedCount: int | None = ...) -> None: ...

class TableStatsRequest(TBase):
    dbName: str
    tblName: str
    colNames: list[str]
    catName: str | None
    validWriteIdList: str | None
    engine: str | None
    id: int
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., colNames: list[str] | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., engine: str | None = ..., id: int | None = ...) -> None: ...

class TableStatsResult(TBase):
    tableStats: list[ColumnStatisticsObj]
    isStatsCompliant: bool | None
    def __init__(self, tableStats: list[ColumnStatisticsObj] | None = ..., isStatsCompliant: bool | None = ...) -> None: ...

class PartitionsStatsRequest(TBase):
    dbName: str
    tblName: str
    colNames: list[str]
    partNames: list[str]
    catName: str | None
    validWriteIdList: str | None
    engine: str | None
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., colNames: list[str] | None = ..., partNames: list[str] | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., engine: str | None = ...) -> None: ...

class PartitionsStatsResult(TBase):
    partStats: dict[str, list[ColumnStatisticsObj]]
    isStatsCompliant: bool | None
    def __init__(self, partStats: dict[str, list[ColumnStatisticsObj]] | None = ..., isStatsCompliant: bool | None = ...) -> None: ...

class AggrStats(TBase):
    colStats: list[ColumnStatisticsObj]
    partsFound: int
    isStatsCompliant: bool | None
    def __init__(self, colStats: list[ColumnStatisticsObj] | None = ..., partsFound: int | None = ..., isStatsCompliant: bool | None = ...) -> None: ...

class DeleteColumnStatisticsRequest(TBase):
    cat_name: str | None
    db_name: str
    tbl_name: str
    part_names: list[str] | None
    col_names: list[str] | None
    engine: str
    tableLevel: bool | None
    def __init__(self, cat_name: str | None = ..., db_name: str | None = ..., tbl_name: str | None = ..., part_names: list[str] | None = ..., col_names: list[str] | None = ..., engine: str | None = ..., tableLevel: bool | None = ...) -> None: ...

class DropConstraintRequest(TBase):
    dbname: str
    tablename: str
    constraintname: str
    catName: str | None
    def __init__(self, dbname: str | None = ..., tablename: str | None = ..., constraintname: str | None = ..., catName: str | None = ...) -> None: ...

class AddPrimaryKeyRequest(TBase):
    primaryKeyCols: list[SQLPrimaryKey]
    def __init__(self, primaryKeyCols: list[SQLPrimaryKey] | None = ...) -> None: ...

class AddForeignKeyRequest(TBase):
    foreignKeyCols: list[SQLForeignKey]
    def __init__(self, foreignKeyCols: list[SQLForeignKey] | None = ...) -> None: ...

class AddUniqueConstraintRequest(TBase):
    uniqueConstraintCols: list[SQLUniqueConstraint]
    def __init__(self, uniqueConstraintCols: list[SQLUniqueConstraint] | None = ...) -> None: ...

class AddNotNullConstraintRequest(TBase):
    notNullConstraintCols: list[SQLNotNullConstraint]
    def __init__(self, notNullConstraintCols: list[SQLNotNullConstraint] | None = ...) -> None: ...

class AddDefaultConstraintRequest(TBase):
    defaultConstraintCols: list[SQLDefaultConstraint]
    def __init__(self, defaultConstraintCols: list[SQLDefaultConstraint] | None = ...) -> None: ...

class AddCheckConstraintRequest(TBase):
    checkConstraintCols: list[SQLCheckConstraint]
    def __init__(self, checkConstraintCols: list[SQLCheckConstraint] | None = ...) -> None: ...

class PrimaryKeysRequest(TBase):
    db_name: str
    tbl_name: str
    catName: str | None
    validWriteIdList: str | None
    tableId: int
    def __init__(self, db_name: str | None = ..., tbl_name: str | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class PrimaryKeysResponse(TBase):
    primaryKeys: list[SQLPrimaryKey]
    def __init__(self, primaryKeys: list[SQLPrimaryKey] | None = ...) -> None: ...

class ForeignKeysRequest(TBase):
    parent_db_name: str
    parent_tbl_name: str
    foreign_db_name: str
    foreign_tbl_name: str
    catName: str | None
    validWriteIdList: str | None
    tableId: int
    def __init__(self, parent_db_name: str | None = ..., parent_tbl_name: str | None = ..., foreign_db_name: str | None = ..., foreign_tbl_name: str | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class ForeignKeysResponse(TBase):
    foreignKeys: list[SQLForeignKey]
    def __init__(self, foreignKeys: list[SQLForeignKey] | None = ...) -> None: ...

class UniqueConstraintsRequest(TBase):
    catName: str
    db_name: str
    tbl_name: str
    validWriteIdList: str | None
    tableId: int
    def __init__(self, catName: str | None = ..., db_name: str | None = ..., tbl_name: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class UniqueConstraintsResponse(TBase):
    uniqueConstraints: list[SQLUniqueConstraint]
    def __init__(self, uniqueConstraints: list[SQLUniqueConstraint] | None = ...) -> None: ...

class NotNullConstraintsRequest(TBase):
    catName: str
    db_name: str
    tbl_name: str
    validWriteIdList: str | None
    tableId: int
    def __init__(self, catName: str | None = ..., db_name: str | None = ..., tbl_name: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class NotNullConstraintsResponse(TBase):
    notNullConstraints: list[SQLNotNullConstraint]
    def __init__(self, notNullConstraints: list[SQLNotNullConstraint] | None = ...) -> None: ...

class DefaultConstraintsRequest(TBase):
    catName: str
    db_name: str
    tbl_name: str
    validWriteIdList: str | None
    tableId: int
    def __init__(self, catName: str | None = ..., db_name: str | None = ..., tbl_name: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class DefaultConstraintsResponse(TBase):
    defaultConstraints: list[SQLDefaultConstraint]
    def __init__(self, defaultConstraints: list[SQLDefaultConstraint] | None = ...) -> None: ...

class CheckConstraintsRequest(TBase):
    catName: str
    db_name: str
    tbl_name: str
    validWriteIdList: str | None
    tableId: int
    def __init__(self, catName: str | None = ..., db_name: str | None = ..., tbl_name: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class CheckConstraintsResponse(TBase):
    checkConstraints: list[SQLCheckConstraint]
    def __init__(self, checkConstraints: list[SQLCheckConstraint] | None = ...) -> None: ...

class AllTableConstraintsRequest(TBase):
    dbName: str
    tblName: str
    catName: str
    validWriteIdList: str | None
    tableId: int
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., catName: str | None = ..., validWriteIdList: str | None = ..., tableId: int | None = ...) -> None: ...

class SQLAllTableConstraints(TBase):
    primaryKeys: list[SQLPrimaryKey]
    foreignKeys: list[SQLForeignKey]
    uniqueConstraints: list[SQLUniqueConstraint]
    notNullConstraints: list[SQLNotNullConstraint]
    defaultConstraints: list[SQLDefaultConstraint]
    checkConstraints: list[SQLCheckConstraint]
    def __init__(self, primaryKeys: list[SQLPrimaryKey] | None = ..., foreignKeys: list[SQLForeignKey] | None = ..., uniqueConstraints: list[SQLUniqueConstraint] | None = ..., notNullConstraints: list[SQLNotNullConstraint] | None = ..., defaultConstraints: list[SQLDefaultConstraint] | None = ..., checkConstraints: list[SQLCheckConstraint] | None = ...) -> None: ...

class AllTableConstraintsResponse(TBase):
    allTableConstraints: SQLAllTableConstraints
    def __init__(self, allTableConstraints: SQLAllTableConstraints | None = ...) -> None: ...

class ResourceUri(TBase):
    resourceType: int
    uri: str
    def __init__(self, resourceType: int | None = ..., uri: str | None = ...) -> None: ...

class Function(TBase):
    functionName: str
    dbName: str
    className: str
    ownerName: str
    ownerType: int
    createTime: int
    functionType: int
    resourceUris: list[ResourceUri]
    catName: str
    def __init__(self, functionName: str | None = ..., dbName: str | None = ..., className: str | None = ..., ownerName: str | None = ..., ownerType: int | None = ..., createTime: int | None = ..., functionType: int | None = ..., resourceUris: list[ResourceUri] | None = ..., catName: str | None = ...) -> None: ...

class GetFunctionsRequest(TBase):
    dbName: str
    catalogName: str | None
    pattern: str | None
    returnNames: bool
    def __init__(self, dbName: str | None = ..., catalogName: str | None = ..., pattern: str | None = ..., returnNames: bool | None = ...) -> None: ...

class GetFunctionsResponse(TBase):
    function_names: list[str] | None
    functions: list[Function] | None
    def __init__(self, function_names: list[str] | None = ..., functions: list[Function] | None = ...) -> None: ...

class GetAllFunctionsResponse(TBase):
    functions: list[Function] | None
    def __init__(self, functions: list[Function] | None = ...) -> None: ...

class Role(TBase):
    roleName: str
    createTime: int
    ownerName: str
    def __init__(self, roleName: str | None = ..., createTime: int | None = ..., ownerName: str | None = ...) -> None: ...

class GrantRevokeRoleRequest(TBase):
    requestType: int
    roleName: str
    principalName: str
    principalType: int
    grantor: str | None
    grantorType: int | None
    grantOption: bool | None
    def __init__(self, requestType: int | None = ..., roleName: str | None = ..., principalName: str | None = ..., principalType: int | None = ..., grantor: str | None = ..., grantorType: int | None = ..., grantOption: bool | None = ...) -> None: ...

class GrantRevokeRoleResponse(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class GetPrincipalsInRoleRequest(TBase):
    roleName: str
    def __init__(self, roleName: str | None = ...) -> None: ...

class RolePrincipalGrant(TBase):
    roleName: str
    principalName: str
    principalType: int
    grantOption: bool
    grantTime: int
    grantorName: str
    grantorPrincipalType: int
    def __init__(self, roleName: str | None = ..., principalName: str | None = ..., principalType: int | None = ..., grantOption: bool | None = ..., grantTime: int | None = ..., grantorName: str | None = ..., grantorPrincipalType: int | None = ...) -> None: ...

class GetPrincipalsInRoleResponse(TBase):
    principalGrants: list[RolePrincipalGrant]
    def __init__(self, principalGrants: list[RolePrincipalGrant] | None = ...) -> None: ...

class GetRoleGrantsForPrincipalRequest(TBase):
    principal_name: str
    principal_type: int
    def __init__(self, principal_name: str | None = ..., principal_type: int | None = ...) -> None: ...

class GetRoleGrantsForPrincipalResponse(TBase):
    principalGrants: list[RolePrincipalGrant]
    def __init__(self, principalGrants: list[RolePrincipalGrant] | None = ...) -> None: ...

class HiveObjectRef(TBase):
    objectType: int
    dbName: str
    objectName: str
    partValues: list[str]
    columnName: str
    catName: str | None
    def __init__(self, objectType: int | None = ..., dbName: str | None = ..., objectName: str | None = ..., partValues: list[str] | None = ..., columnName: str | None = ..., catName: str | None = ...) -> None: ...

class HiveObjectPrivilege(TBase):
    hiveObject: HiveObjectRef
    principalName: str
    principalType: int
    grantInfo: PrivilegeGrantInfo
    authorizer: str
    def __init__(self, hiveObject: HiveObjectRef | None = ..., principalName: str | None = ..., principalType: int | None = ..., grantInfo: PrivilegeGrantInfo | None = ..., authorizer: str | None = ...) -> None: ...

class PrivilegeBag(TBase):
    privileges: list[HiveObjectPrivilege]
    def __init__(self, privileges: list[HiveObjectPrivilege] | None = ...) -> None: ...

class GrantRevokePrivilegeRequest(TBase):
    requestType: int
    privileges: PrivilegeBag
    revokeGrantOption: bool | None
    def __init__(self, requestType: int | None = ..., privileges: PrivilegeBag | None = ..., revokeGrantOption: bool | None = ...) -> None: ...

class GrantRevokePrivilegeResponse(TBase):
    success: bool | None
    def __init__(self, success: bool | None = ...) -> None: ...

class GetOpenTxnsResponse(TBase):
    txn_high_water_mark: int
    open_txns: list[int]
    min_open_txn: int | None
    abortedBits: bytes
    def __init__(self, txn_high_water_mark: int | None = ..., open_txns: list[int] | None = ..., min_open_txn: int | None = ..., abortedBits: bytes | None = ...) -> None: ...

class TxnInfo(TBase):
    id: int
    state: int
    user: str
    hostname: str
    agentInfo: str
    heartbeatCount: int
    metaInfo: str | None
    startedTime: int | None
    lastHeartbeatTime: int | None
    def __init__(self, id: int | None = ..., state: int | None = ..., user: str | None = ..., hostname: str | None = ..., agentInfo: str | None = ..., heartbeatCount: int | None = ..., metaInfo: str | None = ..., startedTime: int | None = ..., lastHeartbeatTime: int | None = ...) -> None: ...

class GetOpenTxnsInfoResponse(TBase):
    txn_high_water_mark: int
    open_txns: list[TxnInfo]
    def __init__(self, txn_high_water_mark: int | None = ..., open_txns: list[TxnInfo] | None = ...) -> None: ...

class OpenTxnRequest(TBase):
    num_txns: int
    user: str
    hostname: str
    agentInfo: str
    replPolicy: str | None
    replSrcTxnIds: list[int] | None
    txn_type: int
    def __init__(self, num_txns: int | None = ..., user: str | None = ..., hostname: str | None = ..., agentInfo: str | None = ..., replPolicy: str | None = ..., replSrcTxnIds: list[int] | None = ..., txn_type: int | None = ...) -> None: ...

class OpenTxnsResponse(TBase):
    txn_ids: list[int]
    def __init__(self, txn_ids: list[int] | None = ...) -> None: ...

class AbortTxnRequest(TBase):
    txnid: int
    replPolicy: str | None
    txn_type: int | None
    errorCode: int | None
    def __init__(self, txnid: int | None = ..., replPolicy: str | None = ..., txn_type: int | None = ..., errorCode: int | None = ...) -> None: ...

class AbortTxnsRequest(TBase):
    txn_ids: list[int]
    errorCode: int | None
    def __init__(self, txn_ids: list[int] | None = ..., errorCode: int | None = ...) -> None: ...

class WriteEventInfo(TBase):
    writeId: int
    database: str
    table: str
    files: str
    partition: str | None
    tableObj: str | None
    partitionObj: str | None
    def __init__(self, writeId: int | None = ..., database: str | None = ..., table: str | None = ..., files: str | None = ..., partition: str | None = ..., tableObj: str | None = ..., partitionObj: str | None = ...) -> None: ...

class ReplLastIdInfo(TBase):
    database: str
    lastReplId: int
    table: str | None
    catalog: str | None
    partitionList: list[str] | None
    def __init__(self, database: str | None = ..., lastReplId: int | None = ..., table: str | None = ..., catalog: str | None = ..., partitionList: list[str] | None = ...) -> None: ...

class CommitTxnKeyValue(TBase):
    tableId: int
    key: str
    value: str
    def __init__(self, tableId: int | None = ..., key: str | None = ..., value: str | None = ...) -> None: ...

class CommitTxnRequest(TBase):
    txnid: int
    replPolicy: str | None
    writeEventInfos: list[WriteEventInfo] | None
    replLastIdInfo: ReplLastIdInfo | None
    keyValue: CommitTxnKeyValue | None
    exclWriteEnabled: bool
    txn_type: int | None
    def __init__(self, txnid: int | None = ..., replPolicy: str | None = ..., writeEventInfos: list[WriteEventInfo] | None = ..., replLastIdInfo: ReplLastIdInfo | None = ..., keyValue: CommitTxnKeyValue | None = ..., exclWriteEnabled: bool | None = ..., txn_type: int | None = ...) -> None: ...

class ReplTblWriteIdStateRequest(TBase):
    validWriteIdlist: str
    user: str
    hostName: str
    dbName: str
    tableName: str
    partNames: list[str] | None
    def __init__(self, validWriteIdlist: str | None = ..., user: str | None = ..., hostName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., partNames: list[str] | None = ...) -> None: ...

class GetValidWriteIdsRequest(TBase):
    fullTableNames: list[str]
    validTxnList: str
    writeId: int | None
    def __init__(self, fullTableNames: list[str] | None = ..., validTxnList: str | None = ..., writeId: int | None = ...) -> None: ...

class TableValidWriteIds(TBase):
    fullTableName: str
    writeIdHighWaterMark: int
    invalidWriteIds: list[int]
    minOpenWriteId: int | None
    abortedBits: bytes
    tableId: int | None
    def __init__(self, fullTableName: str | None = ..., writeIdHighWaterMark: int | None = ..., invalidWriteIds: list[int] | None = ..., minOpenWriteId: int | None = ..., abortedBits: bytes | None = ..., tableId: int | None = ...) -> None: ...

class GetValidWriteIdsResponse(TBase):
    tblValidWriteIds: list[TableValidWriteIds]
    def __init__(self, tblValidWriteIds: list[TableValidWriteIds] | None = ...) -> None: ...

class TxnToWriteId(TBase):
    txnId: int
    writeId: int
    def __init__(self, txnId: int | None = ..., writeId: int | None = ...) -> None: ...

class AllocateTableWriteIdsRequest(TBase):
    dbName: str
    tableName: str
    txnIds: list[int] | None
    replPolicy: str | None
    srcTxnToWriteIdList: list[TxnToWriteId] | None
    reallocate: bool | None
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., txnIds: list[int] | None = ..., replPolicy: str | None = ..., srcTxnToWriteIdList: list[TxnToWriteId] | None = ..., reallocate: bool | None = ...) -> None: ...

class AllocateTableWriteIdsResponse(TBase):
    txnToWriteIds: list[TxnToWriteId]
    def __init__(self, txnToWriteIds: list[TxnToWriteId] | None = ...) -> None: ...

class MaxAllocatedTableWriteIdRequest(TBase):
    dbName: str
    tableName: str
    def __init__(self, dbName: str | None = ..., tableName: str | None = ...) -> None: ...

class MaxAllocatedTableWriteIdResponse(TBase):
    maxWriteId: int
    def __init__(self, maxWriteId: int | None = ...) -> None: ...

class SeedTableWriteIdsRequest(TBase):
    dbName: str
    tableName: str
    seedWriteId: int
    def __init__(self, dbName: str | None = ..., tableName: str | None = ..., seedWriteId: int | None = ...) -> None: ...

class SeedTxnIdRequest(TBase):
    seedTxnId: int
    def __init__(self, seedTxnId: int | None = ...) -> None: ...

class HeartbeatTxnRangeRequest(TBase):
    min: int
    max: int
    def __init__(self, min: int | None = ..., max: int | None = ...) -> None: ...

class HeartbeatTxnRangeResponse(TBase):
    aborted: set[int]
    nosuch: set[int]
    def __init__(self, aborted: set[int] | None = ..., nosuch: set[int] | None = ...) -> None: ...

class AddDynamicPartitions(TBase):
    txnid: int
    writeid: int
    dbname: str
    tablename: str
    partitionnames: list[str]
    operationType: int
    def __init__(self, txnid: int | None = ..., writeid: int | None = ..., dbname: str | None = ..., tablename: str | None = ..., partitionnames: list[str] | None = ..., operationType: int | None = ...) -> None: ...

class GetOpenTxnsRequest(TBase):
    excludeTxnTypes: list[int] | None
    def __init__(self, excludeTxnTypes: list[int] | None = ...) -> None: ...

class ReplayedTxnsForPolicyResult(TBase):
    replTxnMapEntry: dict[str, str]
    def __init__(self, replTxnMapEntry: dict[str, str] | None = ...) -> None: ...

class LockComponent(TBase):
    type: int
    level: int
    dbname: str
    tablename: str | None
    partitionname: str | None
    operationType: int
    isTransactional: bool | None
    isDynamicPartitionWrite: bool
    catName: str
    def __init__(self, type: int | None = ..., level: int | None = ..., dbname: str | None = ..., tablename: str | None = ..., partitionname: str | None = ..., operationType: int | None = ..., isTransactional: bool | None = ..., isDynamicPartitionWrite: bool | None = ..., catName: str | None = ...) -> None: ...

class LockRequest(TBase):
    component: list[LockComponent]
    txnid: int | None
    user: str
    hostname: str
    agentInfo: str
    zeroWaitReadEnabled: bool
    exclusiveCTAS: bool
    locklessReadsEnabled: bool | None
    def __init__(self, component: list[LockComponent] | None = ..., txnid: int | None = ..., user: str | None = ..., hostname: str | None = ..., agentInfo: str | None = ..., zeroWaitReadEnabled: bool | None = ..., exclusiveCTAS: bool | None = ..., locklessReadsEnabled: bool | None = ...) -> None: ...

class LockResponse(TBase):
    lockid: int
    state: int
    errorMessage: str | None
    def __init__(self, lockid: int | None = ..., state: int | None = ..., errorMessage: str | None = ...) -> None: ...

class CheckLockRequest(TBase):
    lockid: int
    txnid: int | None
    elapsed_ms: int | None
    def __init__(self, lockid: int | None = ..., txnid: int | None = ..., elapsed_ms: int | None = ...) -> None: ...

class UnlockRequest(TBase):
    lockid: int
    def __init__(self, lockid: int | None = ...) -> None: ...

class ShowLocksRequest(TBase):
    dbname: str | None
    tablename: str | None
    partname: str | None
    isExtended: bool
    txnid: int | None
    catname: str
    def __init__(self, dbname: str | None = ..., tablename: str | None = ..., partname: str | None = ..., isExtended: bool | None = ..., txnid: int | None = ..., catname: str | None = ...) -> None: ...

class ShowLocksResponseElement(TBase):
    lockid: int
    dbname: str
    tablename: str | None
    partname: str | None
    state: int
    type: int
    txnid: int | None
    lastheartbeat: int
    acquiredat: int | None
    user: str
    hostname: str
    heartbeatCount: int
    agentInfo: str | None
    blockedByExtId: int | None
    blockedByIntId: int | None
    lockIdInternal: int | None
    catname: str
    def __init__(self, lockid: int | None = ..., dbname: str | None = ..., tablename: str | None = ..., partname: str | None = ..., state: int | None = ..., type: int | None = ..., txnid: int | None = ..., lastheartbeat: int | None = ..., acquiredat: int | None = ..., user: str | None = ..., hostname: str | None = ..., heartbeatCount: int | None = ..., agentInfo: str | None = ..., blockedByExtId: int | None = ..., blockedByIntId: int | None = ..., lockIdInternal: int | None = ..., catname: str | None = ...) -> None: ...

class ShowLocksResponse(TBase):
    locks: list[ShowLocksResponseElement]
    def __init__(self, locks: list[ShowLocksResponseElement] | None = ...) -> None: ...

class HeartbeatRequest(TBase):
    lockid: int | None
    txnid: int | None
    def __init__(self, lockid: int | None = ..., txnid: int | None = ...) -> None: ...

class LockMaterializationRebuildRequest(TBase):
    catName: str
    dbName: str
    tableName: str
    txnId: int
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., txnId: int | None = ...) -> None: ...

class AbortCompactionRequest(TBase):
    compactionIds: list[int]
    type: str | None
    poolName: str | None
    def __init__(self, compactionIds: list[int] | None = ..., type: str | None = ..., poolName: str | None = ...) -> None: ...

class AbortCompactionResponseElement(TBase):
    compactionId: int
    status: str | None
    message: str | None
    def __init__(self, compactionId: int | None = ..., status: str | None = ..., message: str | None = ...) -> None: ...

class AbortCompactResponse(TBase):
    abortedcompacts: dict[int, AbortCompactionResponseElement]
    def __init__(self, abortedcompacts: dict[int, AbortCompactionResponseElement] | None = ...) -> None: ...

class CompactionRequest(TBase):
    dbname: str
    tablename: str
    partitionname: str | None
    type: int
    runas: str | None
    properties: dict[str, str] | None
    initiatorId: str | None
    initiatorVersion: str | None
    poolName: str | None
    numberOfBuckets: int | None
    orderByClause: str | None
    def __init__(self, dbname: str | None = ..., tablename: str | None = ..., partitionname: str | None = ..., type: int | None = ..., runas: str | None = ..., properties: dict[str, str] | None = ..., initiatorId: str | None = ..., initiatorVersion: str | None = ..., poolName: str | None = ..., numberOfBuckets: int | None = ..., orderByClause: str | None = ...) -> None: ...

class CompactionResponse(TBase):
    id: int
    state: str
    accepted: bool
    errormessage: str | None
    def __init__(self, id: int | None = ..., state: str | None = ..., accepted: bool | None = ..., errormessage: str | None = ...) -> None: ...

class ShowCompactRequest(TBase):
    id: int | None
    poolName: str | None
    dbName: str | None
    tbName: str | None
    partName: str | None
    type: int | None
    state: str | None
    limit: int | None
    order: str | None
    def __init__(self, id: int | None = ..., poolName: str | None = ..., dbName: str | None = ..., tbName: str | None = ..., partName: str | None = ..., type: int | None = ..., state: str | None = ..., limit: int | None = ..., order: str | None = ...) -> None: ...

class ShowCompactResponseElement(TBase):
    dbname: str
    tablename: str
    partitionname: str | None
    type: int
    state: str
    workerid: str | None
    start: int | None
    runAs: str | None
    hightestTxnId: int | None
    metaInfo: str | None
    endTime: int | None
    hadoopJobId: str
    id: int | None
    errorMessage: str | None
    enqueueTime: int | None
    workerVersion: str | None
    initiatorId: str | None
    initiatorVersion: str | None
    cleanerStart: int | None
    poolName: str | None
    nextTxnId: int | None
    txnId: int | None
    commitTime: int | None
    hightestWriteId: int | None
    def __init__(self, dbname: str | None = ..., tablename: str | None = ..., partitionname: str | None = ..., type: int | None = ..., state: str | None = ..., workerid: str | None = ..., start: int | None = ..., runAs: str | None = ..., hightestTxnId: int | None = ..., metaInfo: str | None = ..., endTime: int | None = ..., hadoopJobId: str | None = ..., id: int | None = ..., errorMessage: str | None = ..., enqueueTime: int | None = ..., workerVersion: str | None = ..., initiatorId: str | None = ..., initiatorVersion: str | None = ..., cleanerStart: int | None = ..., poolName: str | None = ..., nextTxnId: int | None = ..., txnId: int | None = ..., commitTime: int | None = ..., hightestWriteId: int | None = ...) -> None: ...

class ShowCompactResponse(TBase):
    compacts: list[ShowCompactResponseElement]
    def __init__(self, compacts: list[ShowCompactResponseElement] | None = ...) -> None: ...

class CompactionInfoStruct(TBase):
    id: int
    dbname: str
    tablename: str
    partitionname: str | None
    type: int
    runas: str | None
    properties: str | None
    toomanyaborts: bool | None
    state: str | None
    workerId: str | None
    start: int | None
    highestWriteId: int | None
    errorMessage: str | None
    hasoldabort: bool | None
    enqueueTime: int | None
    retryRetention: int | None
    poolname: str | None
    numberOfBuckets: int | None
    orderByClause: str | None
    def __init__(self, id: int | None = ..., dbname: str | None = ..., tablename: str | None = ..., partitionname: str | None = ..., type: int | None = ..., runas: str | None = ..., properties: str | None = ..., toomanyaborts: bool | None = ..., state: str | None = ..., workerId: str | None = ..., start: int | None = ..., highestWriteId: int | None = ..., errorMessage: str | None = ..., hasoldabort: bool | None = ..., enqueueTime: int | None = ..., retryRetention: int | None = ..., poolname: str | None = ..., numberOfBuckets: int | None = ..., orderByClause: str | None = ...) -> None: ...

class OptionalCompactionInfoStruct(TBase):
    ci: CompactionInfoStruct | None
    def __init__(self, ci: CompactionInfoStruct | None = ...) -> None: ...

class FindNextCompactRequest(TBase):
    workerId: str | None
    workerVersion: str | None
    poolName: str | None
    def __init__(self, workerId: str | None = ..., workerVersion: str | None = ..., poolName: str | None = ...) -> None: ...

class CompactionMetricsDataStruct(TBase):
    dbname: str
    tblname: str
    partitionname: str | None
    type: int
    metricvalue: int
    version: int
    threshold: int
    def __init__(self, dbname: str | None = ..., tblname: str | None = ..., partitionname: str | None = ..., type: int | None = ..., metricvalue: int | None = ..., version: int | None = ..., threshold: int | None = ...) -> None: ...

class CompactionMetricsDataRequest(TBase):
    dbName: str
    tblName: str
    partitionName: str | None
    type: int
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., partitionName: str | None = ..., type: int | None = ...) -> None: ...

class GetLatestCommittedCompactionInfoRequest(TBase):
    dbname: str
    tablename: str
    partitionnames: list[str] | None
    lastCompactionId: int | None
    def __init__(self, dbname: str | None = ..., tablename: str | None = ..., partitionnames: list[str] | None = ..., lastCompactionId: int | None = ...) -> None: ...

class GetLatestCommittedCompactionInfoResponse(TBase):
    compactions: list[CompactionInfoStruct]
    def __init__(self, compactions: list[CompactionInfoStruct] | None = ...) -> None: ...

class NotificationEventRequest(TBase):
    lastEvent: int
    maxEvents: int | None
    eventTypeSkipList: list[str] | None
    catName: str | None
    dbName: str | None
    tableNames: list[str] | None
    eventTypeList: list[str] | None
    def __init__(self, lastEvent: int | None = ..., maxEvents: int | None = ..., eventTypeSkipList: list[str] | None = ..., catName: str | None = ..., dbName: str | None = ..., tableNames: list[str] | None = ..., eventTypeList: list[str] | None = ...) -> None: ...

class NotificationEvent(TBase):
    eventId: int
    eventTime: int
    eventType: str
    dbName: str | None
    tableName: str | None
    message: str
    messageFormat: str | None
    catName: str | None
    def __init__(self, eventId: int | None = ..., eventTime: int | None = ..., eventType: str | None = ..., dbName: str | None = ..., tableName: str | None = ..., message: str | None = ..., messageFormat: str | None = ..., catName: str | None = ...) -> None: ...

class NotificationEventResponse(TBase):
    events: list[NotificationEvent]
    def __init__(self, events: list[NotificationEvent] | None = ...) -> None: ...

class CurrentNotificationEventId(TBase):
    eventId: int
    def __init__(self, eventId: int | None = ...) -> None: ...

class NotificationEventsCountRequest(TBase):
    fromEventId: int
    dbName: str
    catName: str | None
    toEventId: int | None
    limit: int | None
    tableNames: list[str] | None
    def __init__(self, fromEventId: int | None = ..., dbName: str | None = ..., catName: str | None = ..., toEventId: int | None = ..., limit: int | None = ..., tableNames: list[str] | None = ...) -> None: ...

class NotificationEventsCountResponse(TBase):
    eventsCount: int
    def __init__(self, eventsCount: int | None = ...) -> None: ...

class InsertEventRequestData(TBase):
    replace: bool
    filesAdded: list[str]
    filesAddedChecksum: list[str] | None
    subDirectoryList: list[str] | None
    partitionVal: list[str] | None
    def __init__(self, replace: bool | None = ..., filesAdded: list[str] | None = ..., filesAddedChecksum: list[str] | None = ..., subDirectoryList: list[str] | None = ..., partitionVal: list[str] | None = ...) -> None: ...

class FireEventRequestData(TBase):
    insertData: InsertEventRequestData | None
    insertDatas: list[InsertEventRequestData] | None
    refreshEvent: bool | None
    def __init__(self, insertData: InsertEventRequestData | None = ..., insertDatas: list[InsertEventRequestData] | None = ..., refreshEvent: bool | None = ...) -> None: ...

class FireEventRequest(TBase):
    successful: bool
    data: FireEventRequestData
    dbName: str | None
    tableName: str | None
    partitionVals: list[str] | None
    catName: str | None
    tblParams: dict[str, str] | None
    batchPartitionValsForRefresh: list[list[str]] | None
    def __init__(self, successful: bool | None = ..., data: FireEventRequestData | None = ..., dbName: str | None = ..., tableName: str | None = ..., partitionVals: list[str] | None = ..., catName: str | None = ..., tblParams: dict[str, str] | None = ..., batchPartitionValsForRefresh: list[list[str]] | None = ...) -> None: ...

class FireEventResponse(TBase):
    eventIds: list[int]
    def __init__(self, eventIds: list[int] | None = ...) -> None: ...

class WriteNotificationLogRequest(TBase):
    txnId: int
    writeId: int
    db: str
    table: str
    fileInfo: InsertEventRequestData
    partitionVals: list[str] | None
    def __init__(self, txnId: int | None = ..., writeId: int | None = ..., db: str | None = ..., table: str | None = ..., fileInfo: InsertEventRequestData | None = ..., partitionVals: list[str] | None = ...) -> None: ...

class WriteNotificationLogResponse(TBase):
    def __init__(self) -> None: ...

class WriteNotificationLogBatchRequest(TBase):
    catalog: str
    db: str
    table: str
    requestList: list[WriteNotificationLogRequest]
    def __init__(self, catalog: str | None = ..., db: str | None = ..., table: str | None = ..., requestList: list[WriteNotificationLogRequest] | None = ...) -> None: ...

class WriteNotificationLogBatchResponse(TBase):
    def __init__(self) -> None: ...

class GetAllWriteEventInfoRequest(TBase):
    txnId: int
    dbName: str | None
    tableName: str | None
    def __init__(self, txnId: int | None = ..., dbName: str | None = ..., tableName: str | None = ...) -> None: ...

class WMResourcePlan(TBase):
    name: str
    status: int | None
    queryParallelism: int | None
    defaultPoolPath: str | None
    ns: str | None
    def __init__(self, name: str | None = ..., status: int | None = ..., queryParallelism: int | None = ..., defaultPoolPath: str | None = ..., ns: str | None = ...) -> None: ...

class WMCreateResourcePlanRequest(TBase):
    resourcePlan: WMResourcePlan
    copyFrom: str | None
    def __init__(self, resourcePlan: WMResourcePlan | None = ..., copyFrom: str | None = ...) -> None: ...

class WMCreateResourcePlanResponse(TBase):
    def __init__(self) -> None: ...

class WMGetResourcePlanRequest(TBase):
    resourcePlanName: str
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., ns: str | None = ...) -> None: ...

class WMPool(TBase):
    resourcePlanName: str
    poolPath: str
    allocFraction: float | None
    queryParallelism: int | None
    schedulingPolicy: str | None
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., poolPath: str | None = ..., allocFraction: float | None = ..., queryParallelism: int | None = ..., schedulingPolicy: str | None = ..., ns: str | None = ...) -> None: ...

class WMMapping(TBase):
    resourcePlanName: str
    entityType: str
    entityName: str
    poolPath: str | None
    ordering: int | None
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., entityType: str | None = ..., entityName: str | None = ..., poolPath: str | None = ..., ordering: int | None = ..., ns: str | None = ...) -> None: ...

class WMTrigger(TBase):
    resourcePlanName: str
    triggerName: str
    triggerExpression: str | None
    actionExpression: str | None
    isInUnmanaged: bool | None
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., triggerName: str | None = ..., triggerExpression: str | None = ..., actionExpression: str | None = ..., isInUnmanaged: bool | None = ..., ns: str | None = ...) -> None: ...

class WMPoolTrigger(TBase):
    pool: str
    trigger: str
    ns: str | None
    def __init__(self, pool: str | None = ..., trigger: str | None = ..., ns: str | None = ...) -> None: ...

class WMFullResourcePlan(TBase):
    plan: WMResourcePlan
    pools: list[WMPool]
    mappings: list[WMMapping] | None
    triggers: list[WMTrigger] | None
    poolTriggers: list[WMPoolTrigger] | None
    def __init__(self, plan: WMResourcePlan | None = ..., pools: list[WMPool] | None = ..., mappings: list[WMMapping] | None = ..., triggers: list[WMTrigger] | None = ..., poolTriggers: list[WMPoolTrigger] | None = ...) -> None: ...

class WMGetResourcePlanResponse(TBase):
    resourcePlan: WMFullResourcePlan | None
    def __init__(self, resourcePlan: WMFullResourcePlan | None = ...) -> None: ...

class WMGetActiveResourcePlanRequest(TBase):
    ns: str | None
    def __init__(self, ns: str | None = ...) -> None: ...

class WMGetActiveResourcePlanResponse(TBase):
    resourcePlan: WMFullResourcePlan | None
    def __init__(self, resourcePlan: WMFullResourcePlan | None = ...) -> None: ...

class WMGetAllResourcePlanRequest(TBase):
    ns: str | None
    def __init__(self, ns: str | None = ...) -> None: ...

class WMGetAllResourcePlanResponse(TBase):
    resourcePlans: list[WMResourcePlan] | None
    def __init__(self, resourcePlans: list[WMResourcePlan] | None = ...) -> None: ...

class WMNullableResourcePlan(TBase):
    name: str | None
    status: int | None
    queryParallelism: int | None
    isSetQueryParallelism: bool | None
    defaultPoolPath: str | None
    isSetDefaultPoolPath: bool | None
    ns: str | None
    def __init__(self, name: str | None = ..., status: int | None = ..., queryParallelism: int | None = ..., isSetQueryParallelism: bool | None = ..., defaultPoolPath: str | None = ..., isSetDefaultPoolPath: bool | None = ..., ns: str | None = ...) -> None: ...

class WMAlterResourcePlanRequest(TBase):
    resourcePlanName: str | None
    resourcePlan: WMNullableResourcePlan | None
    isEnableAndActivate: bool | None
    isForceDeactivate: bool | None
    isReplace: bool | None
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., resourcePlan: WMNullableResourcePlan | None = ..., isEnableAndActivate: bool | None = ..., isForceDeactivate: bool | None = ..., isReplace: bool | None = ..., ns: str | None = ...) -> None: ...

class WMAlterResourcePlanResponse(TBase):
    fullResourcePlan: WMFullResourcePlan | None
    def __init__(self, fullResourcePlan: WMFullResourcePlan | None = ...) -> None: ...

class WMValidateResourcePlanRequest(TBase):
    resourcePlanName: str
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., ns: str | None = ...) -> None: ...

class WMValidateResourcePlanResponse(TBase):
    errors: list[str] | None
    warnings: list[str] | None
    def __init__(self, errors: list[str] | None = ..., warnings: list[str] | None = ...) -> None: ...

class WMDropResourcePlanRequest(TBase):
    resourcePlanName: str
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., ns: str | None = ...) -> None: ...

class WMDropResourcePlanResponse(TBase):
    def __init__(self) -> None: ...

class WMCreateTriggerRequest(TBase):
    trigger: WMTrigger
    def __init__(self, trigger: WMTrigger | None = ...) -> None: ...

class WMCreateTriggerResponse(TBase):
    def __init__(self) -> None: ...

class WMAlterTriggerRequest(TBase):
    trigger: WMTrigger
    def __init__(self, trigger: WMTrigger | None = ...) -> None: ...

class WMAlterTriggerResponse(TBase):
    def __init__(self) -> None: ...

class WMDropTriggerRequest(TBase):
    resourcePlanName: str
    triggerName: str
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., triggerName: str | None = ..., ns: str | None = ...) -> None: ...

class WMDropTriggerResponse(TBase):
    def __init__(self) -> None: ...

class WMGetTriggersForResourePlanRequest(TBase):
    resourcePlanName: str
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., ns: str | None = ...) -> None: ...

class WMGetTriggersForResourePlanResponse(TBase):
    triggers: list[WMTrigger] | None
    def __init__(self, triggers: list[WMTrigger] | None = ...) -> None: ...

class WMCreatePoolRequest(TBase):
    pool: WMPool
    def __init__(self, pool: WMPool | None = ...) -> None: ...

class WMCreatePoolResponse(TBase):
    def __init__(self) -> None: ...

class WMNullablePool(TBase):
    resourcePlanName: str
    poolPath: str
    allocFraction: float | None
    queryParallelism: int | None
    schedulingPolicy: str | None
    isSetSchedulingPolicy: bool | None
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., poolPath: str | None = ..., allocFraction: float | None = ..., queryParallelism: int | None = ..., schedulingPolicy: str | None = ..., isSetSchedulingPolicy: bool | None = ..., ns: str | None = ...) -> None: ...

class WMAlterPoolRequest(TBase):
    pool: WMNullablePool
    poolPath: str
    def __init__(self, pool: WMNullablePool | None = ..., poolPath: str | None = ...) -> None: ...

class WMAlterPoolResponse(TBase):
    def __init__(self) -> None: ...

class WMDropPoolRequest(TBase):
    resourcePlanName: str
    poolPath: str
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., poolPath: str | None = ..., ns: str | None = ...) -> None: ...

class WMDropPoolResponse(TBase):
    def __init__(self) -> None: ...

class WMCreateOrUpdateMappingRequest(TBase):
    mapping: WMMapping
    update: bool | None
    def __init__(self, mapping: WMMapping | None = ..., update: bool | None = ...) -> None: ...

class WMCreateOrUpdateMappingResponse(TBase):
    def __init__(self) -> None: ...

class WMDropMappingRequest(TBase):
    mapping: WMMapping
    def __init__(self, mapping: WMMapping | None = ...) -> None: ...

class WMDropMappingResponse(TBase):
    def __init__(self) -> None: ...

class WMCreateOrDropTriggerToPoolMappingRequest(TBase):
    resourcePlanName: str
    triggerName: str
    poolPath: str
    drop: bool | None
    ns: str | None
    def __init__(self, resourcePlanName: str | None = ..., triggerName: str | None = ..., poolPath: str | None = ..., drop: bool | None = ..., ns: str | None = ...) -> None: ...

class WMCreateOrDropTriggerToPoolMappingResponse(TBase):
    def __init__(self) -> None: ...

class ScheduledQueryPollRequest(TBase):
    clusterNamespace: str
    def __init__(self, clusterNamespace: str | None = ...) -> None: ...

class ScheduledQueryKey(TBase):
    scheduleName: str
    clusterNamespace: str
    def __init__(self, scheduleName: str | None = ..., clusterNamespace: str | None = ...) -> None: ...

class ScheduledQueryPollResponse(TBase):
    scheduleKey: ScheduledQueryKey | None
    executionId: int | None
    query: str | None
    user: str | None
    def __init__(self, scheduleKey: ScheduledQueryKey | None = ..., executionId: int | None = ..., query: str | None = ..., user: str | None = ...) -> None: ...

class ScheduledQuery(TBase):
    scheduleKey: ScheduledQueryKey
    enabled: bool | None
    schedule: str | None
    user: str | None
    query: str | None
    nextExecution: int | None
    def __init__(self, scheduleKey: ScheduledQueryKey | None = ..., enabled: bool | None = ..., schedule: str | None = ..., user: str | None = ..., query: str | None = ..., nextExecution: int | None = ...) -> None: ...

class ScheduledQueryMaintenanceRequest(TBase):
    type: int
    scheduledQuery: ScheduledQuery
    def __init__(self, type: int | None = ..., scheduledQuery: ScheduledQuery | None = ...) -> None: ...

class ScheduledQueryProgressInfo(TBase):
    scheduledExecutionId: int
    state: int
    executorQueryId: str
    errorMessage: str | None
    def __init__(self, scheduledExecutionId: int | None = ..., state: int | None = ..., executorQueryId: str | None = ..., errorMessage: str | None = ...) -> None: ...

class RuntimeStat(TBase):
    createTime: int | None
    weight: int
    payload: bytes
    def __init__(self, createTime: int | None = ..., weight: int | None = ..., payload: bytes | None = ...) -> None: ...

class GetRuntimeStatsRequest(TBase):
    maxWeight: int
    maxCreateTime: int
    def __init__(self, maxWeight: int | None = ..., maxCreateTime: int | None = ...) -> None: ...

class ISchema(TBase):
    schemaType: int
    name: str
    catName: str
    dbName: str
    compatibility: int
    validationLevel: int
    canEvolve: bool
    schemaGroup: str | None
    description: str | None
    def __init__(self, schemaType: int | None = ..., name: str | None = ..., catName: str | None = ..., dbName: str | None = ..., compatibility: int | None = ..., validationLevel: int | None = ..., canEvolve: bool | None = ..., schemaGroup: str | None = ..., description: str | None = ...) -> None: ...

class ISchemaName(TBase):
    catName: str
    dbName: str
    schemaName: str
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., schemaName: str | None = ...) -> None: ...

class AlterISchemaRequest(TBase):
    name: ISchemaName
    newSchema: ISchema
    def __init__(self, name: ISchemaName | None = ..., newSchema: ISchema | None = ...) -> None: ...

class SchemaVersion(TBase):
    schema: ISchemaName
    version: int
    createdAt: int
    cols: list[FieldSchema]
    state: int | None
    description: str | None
    schemaText: str | None
    fingerprint: str | None
    name: str | None
    serDe: SerDeInfo | None
    def __init__(self, schema: ISchemaName | None = ..., version: int | None = ..., createdAt: int | None = ..., cols: list[FieldSchema] | None = ..., state: int | None = ..., description: str | None = ..., schemaText: str | None = ..., fingerprint: str | None = ..., name: str | None = ..., serDe: SerDeInfo | None = ...) -> None: ...

class SchemaVersionDescriptor(TBase):
    schema: ISchemaName
    version: int
    def __init__(self, schema: ISchemaName | None = ..., version: int | None = ...) -> None: ...

class FindSchemasByColsRqst(TBase):
    colName: str | None
    colNamespace: str | None
    type: str | None
    def __init__(self, colName: str | None = ..., colNamespace: str | None = ..., type: str | None = ...) -> None: ...

class FindSchemasByColsResp(TBase):
    schemaVersions: list[SchemaVersionDescriptor]
    def __init__(self, schemaVersions: list[SchemaVersionDescriptor] | None = ...) -> None: ...

class MapSchemaVersionToSerdeRequest(TBase):
    schemaVersion: SchemaVersionDescriptor
    serdeName: str
    def __init__(self, schemaVersion: SchemaVersionDescriptor | None = ..., serdeName: str | None = ...) -> None: ...

class SetSchemaVersionStateRequest(TBase):
    schemaVersion: SchemaVersionDescriptor
    state: int
    def __init__(self, schemaVersion: SchemaVersionDescriptor | None = ..., state: int | None = ...) -> None: ...

class GetSerdeRequest(TBase):
    serdeName: str
    def __init__(self, serdeName: str | None = ...) -> None: ...

class DataConnector(TBase):
    name: str
    type: str
    url: str
    description: str | None
    parameters: dict[str, str] | None
    ownerName: str | None
    ownerType: int | None
    createTime: int | None
    def __init__(self, name: str | None = ..., type: str | None = ..., url: str | None = ..., description: str | None = ..., parameters: dict[str, str] | None = ..., ownerName: str | None = ..., ownerType: int | None = ..., createTime: int | None = ...) -> None: ...

class CreateDataConnectorRequest(TBase):
    connector: DataConnector
    def __init__(self, connector: DataConnector | None = ...) -> None: ...

class GetDataConnectorRequest(TBase):
    connectorName: str
    def __init__(self, connectorName: str | None = ...) -> None: ...

class DropDataConnectorRequest(TBase):
    connectorName: str
    ifNotExists: bool | None
    checkReferences: bool | None
    def __init__(self, connectorName: str | None = ..., ifNotExists: bool | None = ..., checkReferences: bool | None = ...) -> None: ...

class AlterDataConnectorRequest(TBase):
    connectorName: str
    newConnector: DataConnector
    def __init__(self, connectorName: str | None = ..., newConnector: DataConnector | None = ...) -> None: ...

class Type(TBase):
    name: str
    type1: str | None
    type2: str | None
    fields: list[FieldSchema] | None
    def __init__(self, name: str | None = ..., type1: str | None = ..., type2: str | None = ..., fields: list[FieldSchema] | None = ...) -> None: ...

class PropertyGetRequest(TBase):
    nameSpace: str
    mapPrefix: str
    mapPredicate: str | None
    mapSelection: list[str] | None
    def __init__(self, nameSpace: str | None = ..., mapPrefix: str | None = ..., mapPredicate: str | None = ..., mapSelection: list[str] | None = ...) -> None: ...

class PropertyGetResponse(TBase):
    properties: dict[str, dict[str, str]]
    def __init__(self, properties: dict[str, dict[str, str]] | None = ...) -> None: ...

class PropertySetRequest(TBase):
    nameSpace: str
    propertyMap: dict[str, str]
    def __init__(self, nameSpace: str | None = ..., propertyMap: dict[str, str] | None = ...) -> None: ...

class CmRecycleRequest(TBase):
    dataPath: str
    purge: bool
    def __init__(self, dataPath: str | None = ..., purge: bool | None = ...) -> None: ...

class CmRecycleResponse(TBase):
    def __init__(self) -> None: ...

class GetFileMetadataByExprRequest(TBase):
    fileIds: list[int]
    expr: bytes
    doGetFooters: bool | None
    type: int | None
    def __init__(self, fileIds: list[int] | None = ..., expr: bytes | None = ..., doGetFooters: bool | None = ..., type: int | None = ...) -> None: ...

class MetadataPpdResult(TBase):
    metadata: bytes | None
    includeBitset: bytes | None
    def __init__(self, metadata: bytes | None = ..., includeBitset: bytes | None = ...) -> None: ...

class GetFileMetadataByExprResult(TBase):
    metadata: dict[int, MetadataPpdResult]
    isSupported: bool
    def __init__(self, metadata: dict[int, MetadataPpdResult] | None = ..., isSupported: bool | None = ...) -> None: ...

class GetFileMetadataRequest(TBase):
    fileIds: list[int]
    def __init__(self, fileIds: list[int] | None = ...) -> None: ...

class GetFileMetadataResult(TBase):
    metadata: dict[int, bytes]
    isSupported: bool
    def __init__(self, metadata: dict[int, bytes] | None = ..., isSupported: bool | None = ...) -> None: ...

class PutFileMetadataRequest(TBase):
    fileIds: list[int]
    metadata: list[bytes]
    type: int | None
    def __init__(self, fileIds: list[int] | None = ..., metadata: list[bytes] | None = ..., type: int | None = ...) -> None: ...

class PutFileMetadataResult(TBase):
    def __init__(self) -> None: ...

class ClearFileMetadataRequest(TBase):
    fileIds: list[int]
    def __init__(self, fileIds: list[int] | None = ...) -> None: ...

class ClearFileMetadataResult(TBase):
    def __init__(self) -> None: ...

class CacheFileMetadataRequest(TBase):
    dbName: str
    tblName: str
    partName: str | None
    isAllParts: bool | None
    def __init__(self, dbName: str | None = ..., tblName: str | None = ..., partName: str | None = ..., isAllParts: bool | None = ...) -> None: ...

class CacheFileMetadataResult(TBase):
    isSupported: bool
    def __init__(self, isSupported: bool | None = ...) -> None: ...

class ReplicationMetrics(TBase):
    scheduledExecutionId: int
    policy: str
    dumpExecutionId: int
    metadata: str | None
    progress: str | None
    messageFormat: str | None
    def __init__(self, scheduledExecutionId: int | None = ..., policy: str | None = ..., dumpExecutionId: int | None = ..., metadata: str | None = ..., progress: str | None = ..., messageFormat: str | None = ...) -> None: ...

class ReplicationMetricList(TBase):
    replicationMetricList: list[ReplicationMetrics]
    def __init__(self, replicationMetricList: list[ReplicationMetrics] | None = ...) -> None: ...

class GetReplicationMetricsRequest(TBase):
    scheduledExecutionId: int | None
    policy: str | None
    dumpExecutionId: int | None
    def __init__(self, scheduledExecutionId: int | None = ..., policy: str | None = ..., dumpExecutionId: int | None = ...) -> None: ...

class StoredProcedure(TBase):
    name: str
    dbName: str
    catName: str
    ownerName: str
    source: str
    def __init__(self, name: str | None = ..., dbName: str | None = ..., catName: str | None = ..., ownerName: str | None = ..., source: str | None = ...) -> None: ...

class StoredProcedureRequest(TBase):
    catName: str
    dbName: str
    procName: str
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., procName: str | None = ...) -> None: ...

class ListStoredProcedureRequest(TBase):
    catName: str
    dbName: str | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ...) -> None: ...

class GetPackageRequest(TBase):
    catName: str
    dbName: str
    packageName: str
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., packageName: str | None = ...) -> None: ...

class Package(TBase):
    catName: str
    dbName: str
    packageName: str
    ownerName: str
    header: str
    body: str
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., packageName: str | None = ..., ownerName: str | None = ..., header: str | None = ..., body: str | None = ...) -> None: ...

class AddPackageRequest(TBase):
    catName: str
    dbName: str
    packageName: str
    ownerName: str
    header: str
    body: str
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., packageName: str | None = ..., ownerName: str | None = ..., header: str | None = ..., body: str | None = ...) -> None: ...

class ListPackageRequest(TBase):
    catName: str
    dbName: str | None
    def __init__(self, catName: str | None = ..., dbName: str | None = ...) -> None: ...

class DropPackageRequest(TBase):
    catName: str
    dbName: str
    packageName: str
    def __init__(self, catName: str | None = ..., dbName: str | None = ..., packageName: str | None = ...) -> None: ...

class Index(TBase):
    indexName: str
    indexHandlerClass: str
    dbName: str
    origTableName: str
    createTime: int
    lastAccessTime: int
    indexTableName: str
    sd: StorageDescriptor
    parameters: dict[str, str]
    deferredRebuild: bool
    def __init__(self, indexName: str | None = ..., indexHandlerClass: str | None = ..., dbName: str | None = ..., origTableName: str | None = ..., createTime: int | None = ..., lastAccessTime: int | None = ..., indexTableName: str | None = ..., sd: StorageDescriptor | None = ..., parameters: dict[str, str] | None = ..., deferredRebuild: bool | None = ...) -> None: ...

class BasicTxnInfo(TBase):
    isnull: bool
    time: int | None
    txnid: int | None
    dbname: str | None
    tablename: str | None
    partitionname: str | None
    def __init__(self, isnull: bool | None = ..., time: int | None = ..., txnid: int | None = ..., dbname: str | None = ..., tablename: str | None = ..., partitionname: str | None = ...) -> None: ...

class CompactionMetricsDataResponse(TBase):
    data: CompactionMetricsDataStruct | None
    def __init__(self, data: CompactionMetricsDataStruct | None = ...) -> None: ...

class Schema(TBase):
    fieldSchemas: list[FieldSchema]
    properties: dict[str, str]
    def __init__(self, fieldSchemas: list[FieldSchema] | None = ..., properties: dict[str, str] | None = ...) -> None: ...

class Version(TBase):
    version: str
    comments: str
    def __init__(self, version: str | None = ..., comments: str | None = ...) -> None: ...


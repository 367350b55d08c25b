/*
 * The Hive metastore protocol: the union of Hive 2.3, 3.1, 4.0, 4.1, 4.2 and the calls added since.
 *
 * One service answers all of these clients at once, so each struct holds every field that any of them knows. Nothing is
 * `required` here, so that a message of any release can be read; `// required` says that readers of some release refuse
 * the struct without the field, so a reply must fill it. Ids that changed their meaning between releases have the
 * meaning of 3.1 and later; the other reading is in hms_cache/wire/versions.py. A comment such as `since 3.1` names the
 * first of these releases that has the item.
 *
 * Exceptions are mutable in Python, because raising one through a context manager sets its traceback.
 *
 * tools/generate_thrift.py makes hms_cache/thrift_gen from this file.
 */

include "fb303.thrift"

namespace py hms_cache.thrift_gen.hive_metastore

// ----------------------------------------------------------------------------------------------------
// Constants: names of parameters and properties, filter fields, access types
// ----------------------------------------------------------------------------------------------------

const i8 ACCESSTYPE_NONE = 1
const i8 ACCESSTYPE_READONLY = 2
const i8 ACCESSTYPE_READWRITE = 8
const i8 ACCESSTYPE_WRITEONLY = 4
const string BUCKET_COUNT = "bucket_count"
const string BUCKET_FIELD_NAME = "bucket_field_name"
const string CTAS_LEGACY_CONFIG = "create_table_as_external"
const string DDL_TIME = "transient_lastDdlTime"
const string DEFAULT_TABLE_TYPE = "defaultTableType"
const string DRUID_CONFIG_PREFIX = "druid."
const string EXPECTED_PARAMETER_KEY = "expected_parameter_key"
const string EXPECTED_PARAMETER_VALUE = "expected_parameter_value"
const string FIELD_TO_DIMENSION = "field_to_dimension"
const string FILE_INPUT_FORMAT = "file.inputformat"
const string FILE_OUTPUT_FORMAT = "file.outputformat"
const string HIVE_FILTER_FIELD_LAST_ACCESS = "hive_filter_field_last_access__"
const string HIVE_FILTER_FIELD_OWNER = "hive_filter_field_owner__"
const string HIVE_FILTER_FIELD_PARAMS = "hive_filter_field_params__"
const string HIVE_FILTER_FIELD_TABLE_NAME = "hive_filter_field_tableName__"
const string HIVE_FILTER_FIELD_TABLE_TYPE = "hive_filter_field_tableType__"
const string IF_PURGE = "ifPurge"
const string IS_ARCHIVED = "is_archived"
const string IS_IMMUTABLE = "immutable"
const string JDBC_CONFIG_PREFIX = "hive.sql."
const string META_TABLE_COLUMNS = "columns"
const string META_TABLE_COLUMN_TYPES = "columns.types"
const string META_TABLE_DB = "db"
const string META_TABLE_LOCATION = "location"
const string META_TABLE_NAME = "name"
const string META_TABLE_PARTITION_COLUMNS = "partition_columns"
const string META_TABLE_PARTITION_COLUMN_TYPES = "partition_columns.types"
const string META_TABLE_SERDE = "serde"
const string META_TABLE_STORAGE = "storage_handler"
const string NO_AUTO_COMPACT = "no_auto_compaction"
const string NO_CLEANUP = "no_cleanup"
const string ORIGINAL_LOCATION = "original_location"
const string PARTITION_TRANSFORM_SPEC = "partition_transform_spec"
const string TABLE_BUCKETING_VERSION = "bucketing_version"
const string TABLE_IS_CTAS = "created_with_ctas"
const string TABLE_IS_CTLT = "created_with_ctlt"
const string TABLE_IS_TRANSACTIONAL = "transactional"
const string TABLE_NO_AUTO_COMPACT = "no_auto_compaction"
const string TABLE_TRANSACTIONAL_PROPERTIES = "transactional_properties"
const string TXN_ID = "txnId"
const string WRITE_ID = "writeId"

// ----------------------------------------------------------------------------------------------------
// Exceptions
//
// A declared exception is written under the field id of its method's throws clause, or the client reports an
// unknown result.
// ----------------------------------------------------------------------------------------------------

exception AlreadyExistsException {
  1: string message,
} (python.immutable = "false")

// Since 4.0.0.
exception CompactionAbortedException {
  1: string message,
} (python.immutable = "false")

exception ConfigValSecurityException {
  1: string message,
} (python.immutable = "false")

// 2.3 only.
exception IndexAlreadyExistsException {
  1: string message,
} (python.immutable = "false")

exception InvalidInputException {
  1: string message,
} (python.immutable = "false")

exception InvalidObjectException {
  1: string message,
} (python.immutable = "false")

exception InvalidOperationException {
  1: string message,
} (python.immutable = "false")

exception InvalidPartitionException {
  1: string message,
} (python.immutable = "false")

exception MetaException {
  1: string message,
} (python.immutable = "false")

// Since 4.0.0.
exception NoSuchCompactionException {
  1: string message,
} (python.immutable = "false")

exception NoSuchLockException {
  1: string message,
} (python.immutable = "false")

exception NoSuchObjectException {
  1: string message,
} (python.immutable = "false")

exception NoSuchTxnException {
  1: string message,
} (python.immutable = "false")

exception TxnAbortedException {
  1: string message,
} (python.immutable = "false")

exception TxnOpenException {
  1: string message,
} (python.immutable = "false")

exception UnknownDBException {
  1: string message,
} (python.immutable = "false")

exception UnknownPartitionException {
  1: string message,
} (python.immutable = "false")

exception UnknownTableException {
  1: string message,
} (python.immutable = "false")

// ----------------------------------------------------------------------------------------------------
// Catalogs
// ----------------------------------------------------------------------------------------------------

// Since 3.1.
struct Catalog {
  1: string name,
  2: optional string description,
  3: string locationUri,
  4: optional i32 createTime,  // since 4.0.0
  5: optional map<string, string> parameters,  // since 4.2
}

// Since 3.1.
struct CreateCatalogRequest {
  1: Catalog catalog,
}

// Since 3.1.
struct AlterCatalogRequest {
  1: string name,
  2: Catalog newCat,
}

// Since 3.1.
struct GetCatalogRequest {
  1: string name,
}

// Since 3.1.
struct GetCatalogResponse {
  1: Catalog catalog,
}

// Since 3.1.
struct GetCatalogsResponse {
  1: list<string> names,
}

// Since 3.1.
struct DropCatalogRequest {
  1: string name,
  2: optional bool ifExists,  // since 4.1; without its default: clients before it, which do not write it, expect the exception
}

// ----------------------------------------------------------------------------------------------------
// Databases
// ----------------------------------------------------------------------------------------------------

enum PrincipalType {
  USER = 1,
  ROLE = 2,
  GROUP = 3,
}

struct PrivilegeGrantInfo {
  1: string privilege,
  2: i32 createTime,
  3: string grantor,
  4: PrincipalType grantorType,
  5: bool grantOption,
}

struct PrincipalPrivilegeSet {
  1: map<string, list<PrivilegeGrantInfo>> userPrivileges,
  2: map<string, list<PrivilegeGrantInfo>> groupPrivileges,
  3: map<string, list<PrivilegeGrantInfo>> rolePrivileges,
}

enum DatabaseType {
  NATIVE = 1,
  REMOTE = 2,
}

struct Database {
  1: string name,
  2: string description,
  3: string locationUri,
  4: map<string, string> parameters,
  5: optional PrincipalPrivilegeSet privileges,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
  8: optional string catalogName,
  9: optional i32 createTime,  // since 4.0.0
  10: optional string managedLocationUri,  // since 4.0.0
  11: optional DatabaseType type,  // since 4.0.0
  12: optional string connector_name,  // since 4.0.0
  13: optional string remote_dbname,  // since 4.0.0
}

// Since 4.0.0. Id 11 was a string in 4.0.0, where no call used this struct.
struct CreateDatabaseRequest {
  1: string databaseName,  // required
  2: optional string description,
  3: optional string locationUri,
  4: optional map<string, string> parameters,
  5: optional PrincipalPrivilegeSet privileges,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
  8: optional string catalogName,
  9: optional i32 createTime,
  10: optional string managedLocationUri,
  11: optional DatabaseType type,
  12: optional string dataConnectorName,
  13: optional string remote_dbname,  // since 4.0.1
}

// Since 4.0.0.
struct GetDatabaseRequest {
  1: optional string name,
  2: optional string catalogName,
  3: optional list<string> processorCapabilities,
  4: optional string processorIdentifier,
}

// Since 4.0.0. Id 9 is the handle of an asynchronous drop, not a table id.
struct DropDatabaseRequest {
  1: string name,  // required
  2: optional string catalogName,
  3: bool ignoreUnknownDb,  // required
  4: bool deleteData,  // required
  5: bool cascade,  // required
  6: optional bool softDelete = false,
  7: optional i64 txnId = 0,
  8: optional bool deleteManagedDir = true,
  9: optional string id,  // after 4.2
  10: optional bool asyncDrop,  // after 4.2
  11: optional bool cancel,  // after 4.2
}

// After 4.2.
struct AsyncOperationResp {
  1: string id,  // required
  2: optional string message,
  3: optional bool finished,
}

// Since 4.1.
struct GetDatabaseObjectsRequest {
  1: optional string catalogName,
  2: optional string pattern,
}

// Since 4.1.
struct GetDatabaseObjectsResponse {
  1: list<Database> databases,  // required
}

// Since 4.0.1.
struct AlterDatabaseRequest {
  1: string oldDbName,  // required
  2: Database newDb,  // required
}

// ----------------------------------------------------------------------------------------------------
// Tables, views, materialized views
// ----------------------------------------------------------------------------------------------------

struct FieldSchema {
  1: string name,
  2: string type,
  3: string comment,
}

struct EnvironmentContext {
  1: map<string, string> properties,
}

// Since 4.0.0.
struct GetFieldsRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: optional EnvironmentContext envContext,
  5: optional string validWriteIdList,
  6: optional i64 id = -1,
}

// Since 4.0.0.
struct GetFieldsResponse {
  1: list<FieldSchema> fields,  // required
}

// Since 4.0.0.
struct GetSchemaRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: optional EnvironmentContext envContext,
  5: optional string validWriteIdList,
  6: optional i64 id = -1,
}

// Since 4.0.0.
struct GetSchemaResponse {
  1: list<FieldSchema> fields,  // required
}

enum SerdeType {
  HIVE = 1,
  SCHEMA_REGISTRY = 2,
}

struct SerDeInfo {
  1: string name,
  2: string serializationLib,
  3: map<string, string> parameters,
  4: optional string description,  // since 3.1
  5: optional string serializerClass,  // since 3.1
  6: optional string deserializerClass,  // since 3.1
  7: optional SerdeType serdeType,  // since 3.1
}

struct Order {
  1: string col,
  2: i32 order,
}

// The keys of the map are tuples in Python, which has no hash for lists.
struct SkewedInfo {
  1: list<string> skewedColNames,
  2: list<list<string>> skewedColValues,
  3: map<list<string> (python.immutable = ""), string> skewedColValueLocationMaps,
}

struct StorageDescriptor {
  1: list<FieldSchema> cols,
  2: string location,
  3: string inputFormat,
  4: string outputFormat,
  5: bool compressed,
  6: i32 numBuckets,
  7: SerDeInfo serdeInfo,
  8: list<string> bucketCols,
  9: list<Order> sortCols,
  10: map<string, string> parameters,
  11: optional SkewedInfo skewedInfo,
  12: optional bool storedAsSubDirectories,
}

// Since 4.0.0.
struct SourceTable {
  1: Table table,  // required
  2: i64 insertedCount,  // required
  3: i64 updatedCount,  // required
  4: i64 deletedCount,  // required
}

// Since 3.1.
struct CreationMetadata {
  1: string catName,  // required
  2: string dbName,  // required
  3: string tblName,  // required
  4: set<string> tablesUsed,  // required
  5: optional string validTxnList,
  6: optional i64 materializationTime,
  7: optional list<SourceTable> sourceTables,  // since 4.0.0
}

struct ColumnStatisticsDesc {
  1: bool isTblLevel,  // required
  2: string dbName,  // required
  3: string tableName,  // required
  4: optional string partName,
  5: optional i64 lastAnalyzed,
  6: optional string catName,
}

struct BooleanColumnStatsData {
  1: i64 numTrues,  // required
  2: i64 numFalses,  // required
  3: i64 numNulls,  // required
  4: optional binary bitVectors,
}

struct LongColumnStatsData {
  1: optional i64 lowValue,
  2: optional i64 highValue,
  3: i64 numNulls,  // required
  4: i64 numDVs,  // required
  5: optional binary bitVectors,
  6: optional binary histogram,  // since 4.0.0
}

struct DoubleColumnStatsData {
  1: optional double lowValue,
  2: optional double highValue,
  3: i64 numNulls,  // required
  4: i64 numDVs,  // required
  5: optional binary bitVectors,
  6: optional binary histogram,  // since 4.0.0
}

struct StringColumnStatsData {
  1: i64 maxColLen,  // required
  2: double avgColLen,  // required
  3: i64 numNulls,  // required
  4: i64 numDVs,  // required
  5: optional binary bitVectors,
}

struct BinaryColumnStatsData {
  1: i64 maxColLen,  // required
  2: double avgColLen,  // required
  3: i64 numNulls,  // required
  4: optional binary bitVectors,
}

struct Decimal {
  1: binary unscaled,  // required
  3: i16 scale,  // required
}

struct DecimalColumnStatsData {
  1: optional Decimal lowValue,
  2: optional Decimal highValue,
  3: i64 numNulls,  // required
  4: i64 numDVs,  // required
  5: optional binary bitVectors,
  6: optional binary histogram,  // since 4.0.0
}

struct Date {
  1: i64 daysSinceEpoch,  // required
}

struct DateColumnStatsData {
  1: optional Date lowValue,
  2: optional Date highValue,
  3: i64 numNulls,  // required
  4: i64 numDVs,  // required
  5: optional binary bitVectors,
  6: optional binary histogram,  // since 4.0.0
}

// Since 4.0.0.
struct Timestamp {
  1: i64 secondsSinceEpoch,  // required
}

// Since 4.0.0.
struct TimestampColumnStatsData {
  1: optional Timestamp lowValue,
  2: optional Timestamp highValue,
  3: i64 numNulls,  // required
  4: i64 numDVs,  // required
  5: optional binary bitVectors,
  6: optional binary histogram,
}

// Readers before 4.0 do not know id 8 and see an empty union.
union ColumnStatisticsData {
  1: BooleanColumnStatsData booleanStats,
  2: LongColumnStatsData longStats,
  3: DoubleColumnStatsData doubleStats,
  4: StringColumnStatsData stringStats,
  5: BinaryColumnStatsData binaryStats,
  6: DecimalColumnStatsData decimalStats,
  7: DateColumnStatsData dateStats,
  8: TimestampColumnStatsData timestampStats,  // since 4.0.0
}

struct ColumnStatisticsObj {
  1: string colName,  // required
  2: string colType,  // required
  3: ColumnStatisticsData statsData,  // required
}

struct ColumnStatistics {
  1: ColumnStatisticsDesc statsDesc,  // required
  2: list<ColumnStatisticsObj> statsObj,  // required
  3: optional bool isStatsCompliant,  // since 4.0.0
  4: optional string engine = "hive",  // since 4.0.0
}

// Since 4.0.0.
struct FileMetadata {
  1: i8 type = 1,
  2: i8 version = 1,
  3: list<binary> data,
}

// Since 4.0.0.
struct ObjectDictionary {
  1: map<string, list<binary>> values,  // required
}

// Id 16 was a string (catName) in 2.3, whose own client never wrote it; readers skip the type they do not know.
struct Table {
  1: string tableName,
  2: string dbName,
  3: string owner,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: i32 retention,
  7: StorageDescriptor sd,
  8: list<FieldSchema> partitionKeys,
  9: map<string, string> parameters,
  10: string viewOriginalText,
  11: string viewExpandedText,
  12: string tableType,
  13: optional PrincipalPrivilegeSet privileges,
  14: optional bool temporary = false,
  15: optional bool rewriteEnabled,
  16: optional CreationMetadata creationMetadata,
  17: optional string catName,  // since 3.1
  18: optional PrincipalType ownerType = PrincipalType.USER,  // since 3.1
  19: optional i64 writeId = -1,  // since 4.0.0
  20: optional bool isStatsCompliant,  // since 4.0.0
  21: optional ColumnStatistics colStats,  // since 4.0.0
  22: optional i8 accessType,  // since 4.0.0
  23: optional list<string> requiredReadCapabilities,  // since 4.0.0
  24: optional list<string> requiredWriteCapabilities,  // since 4.0.0
  25: optional i64 id,  // since 4.0.0
  26: optional FileMetadata fileMetadata,  // since 4.0.0
  27: optional ObjectDictionary dictionary,  // since 4.0.0
  28: optional i64 txnId,  // since 4.0.0
}

struct SQLPrimaryKey {
  1: string table_db,
  2: string table_name,
  3: string column_name,
  4: i32 key_seq,
  5: string pk_name,
  6: bool enable_cstr,
  7: bool validate_cstr,
  8: bool rely_cstr,
  9: optional string catName,  // since 3.1
}

struct SQLForeignKey {
  1: string pktable_db,
  2: string pktable_name,
  3: string pkcolumn_name,
  4: string fktable_db,
  5: string fktable_name,
  6: string fkcolumn_name,
  7: i32 key_seq,
  8: i32 update_rule,
  9: i32 delete_rule,
  10: string fk_name,
  11: string pk_name,
  12: bool enable_cstr,
  13: bool validate_cstr,
  14: bool rely_cstr,
  15: optional string catName,  // since 3.1
}

// Since 3.1.
struct SQLUniqueConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: i32 key_seq,
  6: string uk_name,
  7: bool enable_cstr,
  8: bool validate_cstr,
  9: bool rely_cstr,
}

// Since 3.1.
struct SQLNotNullConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: string nn_name,
  6: bool enable_cstr,
  7: bool validate_cstr,
  8: bool rely_cstr,
}

// Since 3.1.
struct SQLDefaultConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: string default_value,
  6: string dc_name,
  7: bool enable_cstr,
  8: bool validate_cstr,
  9: bool rely_cstr,
}

// Since 3.1.
struct SQLCheckConstraint {
  1: string catName,
  2: string table_db,
  3: string table_name,
  4: string column_name,
  5: string check_expression,
  6: string dc_name,
  7: bool enable_cstr,
  8: bool validate_cstr,
  9: bool rely_cstr,
}

// Since 4.0.0.
struct CreateTableRequest {
  1: Table table,  // required
  2: optional EnvironmentContext envContext,
  3: optional list<SQLPrimaryKey> primaryKeys,
  4: optional list<SQLForeignKey> foreignKeys,
  5: optional list<SQLUniqueConstraint> uniqueConstraints,
  6: optional list<SQLNotNullConstraint> notNullConstraints,
  7: optional list<SQLDefaultConstraint> defaultConstraints,
  8: optional list<SQLCheckConstraint> checkConstraints,
  9: optional list<string> processorCapabilities,
  10: optional string processorIdentifier,
}

// Since 4.0.1. Id 7 is the handle of an asynchronous drop, not a table id.
struct DropTableRequest {
  1: optional string catalogName,
  2: string dbName,  // required
  3: string tableName,  // required
  4: optional bool deleteData,
  5: optional EnvironmentContext envContext,
  6: optional bool dropPartitions,
  7: optional string id,  // after 4.2
  8: optional bool asyncDrop,  // after 4.2
  9: optional bool cancel,  // after 4.2
}

// Since 4.0.0.
struct TruncateTableRequest {
  1: string dbName,  // required
  2: string tableName,  // required
  3: optional list<string> partNames,
  4: optional i64 writeId = -1,
  5: optional string validWriteIdList,
  6: optional EnvironmentContext environmentContext,
}

// Since 4.0.0.
struct TruncateTableResponse {
}

struct TableMeta {
  1: string dbName,  // required
  2: string tableName,  // required
  3: string tableType,  // required
  4: optional string comments,
  5: optional string catName,  // since 3.1
  6: optional string ownerName,  // since 4.0.0
  7: optional PrincipalType ownerType,  // since 4.0.0
}

// Since 4.0.0.
struct GetTablesExtRequest {
  1: string catalog,  // required
  2: string database,  // required
  3: string tableNamePattern,  // required
  4: i32 requestedFields,  // required
  5: optional i32 limit,
  6: optional list<string> processorCapabilities,
  7: optional string processorIdentifier,
}

// Since 4.0.0.
struct ExtendedTableInfo {
  1: string tblName,  // required
  2: optional i32 accessType,
  3: optional list<string> requiredReadCapabilities,
  4: optional list<string> requiredWriteCapabilities,
}

enum ClientCapability {
  TEST_CAPABILITY = 1,
  INSERT_ONLY_TABLES = 2,
}

struct ClientCapabilities {
  1: list<ClientCapability> values,  // required
}

// Id 5 is unused in all releases.
struct GetTableRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: optional ClientCapabilities capabilities,
  4: optional string catName,  // since 3.1
  6: optional string validWriteIdList,  // since 4.0.0
  7: optional bool getColumnStats,  // since 4.0.0
  8: optional list<string> processorCapabilities,  // since 4.0.0
  9: optional string processorIdentifier,  // since 4.0.0
  10: optional string engine = "hive",  // since 4.0.0
  11: optional i64 id = -1,  // since 4.0.0
}

struct GetTableResult {
  1: Table table,  // required
  2: optional bool isStatsCompliant,  // since 4.0.0
}

// Since 4.0.0.
struct GetProjectionsSpec {
  1: list<string> fieldList,
  2: string includeParamKeyPattern,
  3: string excludeParamKeyPattern,
}

struct GetTablesRequest {
  1: string dbName,  // required
  2: optional list<string> tblNames,
  3: optional ClientCapabilities capabilities,
  4: optional string catName,  // since 3.1
  5: optional list<string> processorCapabilities,  // since 4.0.0
  6: optional string processorIdentifier,  // since 4.0.0
  7: optional GetProjectionsSpec projectionSpec,  // since 4.0.0
  8: optional string tablesPattern,  // since 4.0.0
}

struct GetTablesResult {
  1: list<Table> tables,  // required
}

// Since 3.1.
struct Materialization {
  1: bool sourceTablesUpdateDeleteModified,  // required
  2: bool sourceTablesCompacted,  // required; since 4.0.0
}

// Since 4.0.0.
struct AlterTableRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tableName,  // required
  4: Table table,  // required
  5: optional EnvironmentContext environmentContext,
  6: optional i64 writeId = -1,
  7: optional string validWriteIdList,
  8: optional list<string> processorCapabilities,
  9: optional string processorIdentifier,
  10: optional string expectedParameterKey,
  11: optional string expectedParameterValue,
}

// Since 4.0.0.
struct AlterTableResponse {
}

// After 4.2.
struct TableParamsUpdate {
  1: optional string cat_name,
  2: string db_name,  // required
  3: string table_name,  // required
  4: map<string, string> params,  // required
  5: optional string expected_param_key,
  6: optional string expected_param_value,
}

// ----------------------------------------------------------------------------------------------------
// Partitions
// ----------------------------------------------------------------------------------------------------

struct Partition {
  1: list<string> values,
  2: string dbName,
  3: string tableName,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: StorageDescriptor sd,
  7: map<string, string> parameters,
  8: optional PrincipalPrivilegeSet privileges,
  9: optional string catName,
  10: optional i64 writeId = -1,  // since 4.0.0
  11: optional bool isStatsCompliant,  // since 4.0.0
  12: optional ColumnStatistics colStats,  // since 4.0.0
  13: optional FileMetadata fileMetadata,  // since 4.0.0
}

struct PartitionWithoutSD {
  1: list<string> values,
  2: i32 createTime,
  3: i32 lastAccessTime,
  4: string relativePath,
  5: map<string, string> parameters,
  6: optional PrincipalPrivilegeSet privileges,
}

struct PartitionSpecWithSharedSD {
  1: list<PartitionWithoutSD> partitions,
  2: StorageDescriptor sd,
}

struct PartitionListComposingSpec {
  1: list<Partition> partitions,
}

struct PartitionSpec {
  1: string dbName,
  2: string tableName,
  3: string rootPath,
  4: optional PartitionSpecWithSharedSD sharedSDPartitionSpec,
  5: optional PartitionListComposingSpec partitionList,
  6: optional string catName,
  7: optional i64 writeId = -1,  // since 4.0.0
  8: optional bool isStatsCompliant,  // since 4.0.0
}

struct AddPartitionsRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: list<Partition> parts,  // required
  4: bool ifNotExists,  // required
  5: optional bool needResult = true,
  6: optional string catName,
  7: optional string validWriteIdList,  // since 4.0.0
  8: optional bool skipColumnSchemaForPartition,  // since 4.0.0
  9: optional list<FieldSchema> partitionColSchema,  // since 4.0.0
  10: optional EnvironmentContext environmentContext,  // since 4.0.1
}

struct AddPartitionsResult {
  1: optional list<Partition> partitions,
  2: optional bool isStatsCompliant,  // since 4.0.0
  3: optional list<FieldSchema> partitionColSchema,  // since 4.0.0
}

// Since 4.0.1.
struct AppendPartitionsRequest {
  1: optional string catalogName,
  2: string dbName,  // required
  3: string tableName,  // required
  4: optional string name,
  5: optional list<string> partVals,
  6: optional EnvironmentContext environmentContext,
}

// Since 4.0.1.
struct DropPartitionRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: optional string partName,
  5: optional list<string> partVals,
  6: optional bool deleteData,
  7: optional EnvironmentContext environmentContext,
}

struct DropPartitionsExpr {
  1: binary expr,  // required
  2: optional i32 partArchiveLevel,
}

union RequestPartsSpec {
  1: list<string> names,
  2: list<DropPartitionsExpr> exprs,
}

struct DropPartitionsRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: RequestPartsSpec parts,  // required
  4: optional bool deleteData,
  5: optional bool ifExists,  // true by default in Hive, whose server asks whether it was sent
  6: optional bool ignoreProtection,
  7: optional EnvironmentContext environmentContext,
  8: optional bool needResult = true,
  9: optional string catName,
  10: optional bool skipColumnSchemaForPartition,  // since 4.0.0
}

struct DropPartitionsResult {
  1: optional list<Partition> partitions,
}

// Since 4.0.0.
struct GetPartitionRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: list<string> partVals,  // required
  5: optional string validWriteIdList,
  6: optional i64 id = -1,
}

// Since 4.0.0.
struct GetPartitionResponse {
  1: Partition partition,  // required
}

// Since 4.0.0.
struct PartitionsRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: optional i16 maxParts = -1,
  5: optional string validWriteIdList,
  6: optional i64 id = -1,
  7: optional bool skipColumnSchemaForPartition,
  8: optional string includeParamKeyPattern,
  9: optional string excludeParamKeyPattern,
}

// Since 4.0.0.
struct PartitionsResponse {
  1: list<Partition> partitions,  // required
}

struct PartitionValuesRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: list<FieldSchema> partitionKeys,  // required
  4: optional bool applyDistinct = true,
  5: optional string filter,
  6: optional list<FieldSchema> partitionOrder,
  7: optional bool ascending = true,
  8: optional i64 maxParts = -1,
  9: optional string catName,
  10: optional string validWriteIdList,  // since 4.0.0
}

struct PartitionValuesRow {
  1: list<string> row,  // required
}

struct PartitionValuesResponse {
  1: list<PartitionValuesRow> partitionValues,  // required
}

// Since 4.0.0.
struct GetPartitionsPsWithAuthRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: optional list<string> partVals,
  5: optional i16 maxParts = -1,
  6: optional string userName,
  7: optional list<string> groupNames,
  8: optional string validWriteIdList,
  9: optional i64 id = -1,
  10: optional bool skipColumnSchemaForPartition,
  11: optional string includeParamKeyPattern,
  12: optional string excludeParamKeyPattern,
  13: optional list<string> partNames,
}

// Since 4.0.0.
struct GetPartitionsPsWithAuthResponse {
  1: list<Partition> partitions,  // required
}

// Since 4.0.0.
struct GetPartitionNamesPsRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tblName,  // required
  4: optional list<string> partValues,
  5: optional i16 maxParts = -1,
  6: optional string validWriteIdList,
  7: optional i64 id = -1,
}

// Since 4.0.0.
struct GetPartitionNamesPsResponse {
  1: list<string> names,  // required
}

struct PartitionsByExprRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: binary expr,  // required
  4: optional string defaultPartitionName,
  5: optional i16 maxParts = -1,
  6: optional string catName,
  7: optional string order,  // since 4.0.0
  8: optional string validWriteIdList,  // since 4.0.0
  9: optional i64 id = -1,  // since 4.0.0
  10: optional bool skipColumnSchemaForPartition,  // since 4.0.0
  11: optional string includeParamKeyPattern,  // since 4.0.0
  12: optional string excludeParamKeyPattern,  // since 4.0.0
}

// Since 4.0.0.
struct GetPartitionsByFilterRequest {
  1: optional string catName,
  2: string dbName,
  3: string tblName,
  4: string filter,
  5: optional i16 maxParts = -1,
  6: optional bool skipColumnSchemaForPartition,
  7: optional string includeParamKeyPattern,
  8: optional string excludeParamKeyPattern,
}

struct PartitionsByExprResult {
  1: list<Partition> partitions,  // required
  2: bool hasUnknownPartitions,  // required
}

// Since 4.0.0.
struct PartitionsSpecByExprResult {
  1: list<PartitionSpec> partitionsSpec,  // required
  2: bool hasUnknownPartitions,  // required
}

// Since 4.0.0.
struct GetPartitionsByNamesRequest {
  1: string db_name,  // required
  2: string tbl_name,  // required
  3: optional list<string> names,
  4: optional bool get_col_stats,
  5: optional list<string> processorCapabilities,
  6: optional string processorIdentifier,
  7: optional string engine = "hive",
  8: optional string validWriteIdList,
  9: optional bool getFileMetadata,
  10: optional i64 id = -1,
  11: optional bool skipColumnSchemaForPartition,
  12: optional string includeParamKeyPattern,
  13: optional string excludeParamKeyPattern,
}

// Since 4.0.0.
struct GetPartitionsByNamesResult {
  1: list<Partition> partitions,  // required
  2: optional ObjectDictionary dictionary,
}

// Since 4.0.0.
struct AlterPartitionsRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tableName,  // required
  4: list<Partition> partitions,  // required
  5: optional EnvironmentContext environmentContext,
  6: optional i64 writeId = -1,
  7: optional string validWriteIdList,
  8: optional bool skipColumnSchemaForPartition,
  9: optional list<FieldSchema> partitionColSchema,
}

// Since 4.0.0.
struct AlterPartitionsResponse {
}

// Since 4.0.0.
struct RenamePartitionRequest {
  1: optional string catName,
  2: string dbName,  // required
  3: string tableName,  // required
  4: list<string> partVals,  // required
  5: Partition newPart,  // required
  6: optional string validWriteIdList,
  7: optional i64 txnId,
  8: optional bool clonePart,
}

// Since 4.0.0.
struct RenamePartitionResponse {
}

enum PartitionEventType {
  LOAD_DONE = 1,
}

enum PartitionFilterMode {
  BY_NAMES = 0,
  BY_VALUES = 1,
  BY_EXPR = 2,
}

// Since 4.0.0.
struct GetPartitionsFilterSpec {
  7: optional PartitionFilterMode filterMode,
  8: optional list<string> filters,
}

// Since 4.0.0.
struct GetPartitionsRequest {
  1: optional string catName,
  2: string dbName,
  3: string tblName,
  4: optional bool withAuth,
  5: optional string user,
  6: optional list<string> groupNames,
  7: GetProjectionsSpec projectionSpec,
  8: GetPartitionsFilterSpec filterSpec,
  9: optional list<string> processorCapabilities,
  10: optional string processorIdentifier,
  11: optional string validWriteIdList,
}

// Since 4.0.0.
struct GetPartitionsResponse {
  1: list<PartitionSpec> partitionSpec,
}

// ----------------------------------------------------------------------------------------------------
// Column statistics
// ----------------------------------------------------------------------------------------------------

struct SetPartitionsStatsRequest {
  1: list<ColumnStatistics> colStats,  // required
  2: optional bool needMerge,
  3: optional i64 writeId = -1,  // since 4.0.0
  4: optional string validWriteIdList,  // since 4.0.0
  5: optional string engine = "hive",  // since 4.0.0
}

// Since 4.0.0.
struct SetPartitionsStatsResponse {
  1: bool result,  // required
}

// Since 4.0.0.
struct UpdateTransactionalStatsRequest {
  1: i64 tableId,  // required
  2: i64 insertCount,  // required
  3: i64 updatedCount,  // required
  4: i64 deletedCount,  // required
}

struct TableStatsRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: list<string> colNames,  // required
  4: optional string catName,  // since 3.1
  5: optional string validWriteIdList,  // since 4.0.0
  6: optional string engine,  // since 4.0.0, which always send it
  7: optional i64 id = -1,  // since 4.0.0
}

struct TableStatsResult {
  1: list<ColumnStatisticsObj> tableStats,  // required
  2: optional bool isStatsCompliant,  // since 4.0.0
}

struct PartitionsStatsRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: list<string> colNames,  // required
  4: list<string> partNames,  // required
  5: optional string catName,
  6: optional string validWriteIdList,  // since 4.0.0
  7: optional string engine,  // since 4.0.0, which always send it
}

struct PartitionsStatsResult {
  1: map<string, list<ColumnStatisticsObj>> partStats,  // required
  2: optional bool isStatsCompliant,  // since 4.0.0
}

struct AggrStats {
  1: list<ColumnStatisticsObj> colStats,  // required
  2: i64 partsFound,  // required
  3: optional bool isStatsCompliant,  // since 4.0.0
}

// Since 4.1.
struct DeleteColumnStatisticsRequest {
  1: optional string cat_name,
  2: string db_name,  // required
  3: string tbl_name,  // required
  4: optional list<string> part_names,
  5: optional list<string> col_names,
  6: optional string engine = "hive",
  7: optional bool tableLevel,
}

// ----------------------------------------------------------------------------------------------------
// Constraints
// ----------------------------------------------------------------------------------------------------

struct DropConstraintRequest {
  1: string dbname,  // required
  2: string tablename,  // required
  3: string constraintname,  // required
  4: optional string catName,  // since 3.1
}

struct AddPrimaryKeyRequest {
  1: list<SQLPrimaryKey> primaryKeyCols,  // required
}

struct AddForeignKeyRequest {
  1: list<SQLForeignKey> foreignKeyCols,  // required
}

// Since 3.1.
struct AddUniqueConstraintRequest {
  1: list<SQLUniqueConstraint> uniqueConstraintCols,  // required
}

// Since 3.1.
struct AddNotNullConstraintRequest {
  1: list<SQLNotNullConstraint> notNullConstraintCols,  // required
}

// Since 3.1.
struct AddDefaultConstraintRequest {
  1: list<SQLDefaultConstraint> defaultConstraintCols,  // required
}

// Since 3.1.
struct AddCheckConstraintRequest {
  1: list<SQLCheckConstraint> checkConstraintCols,  // required
}

struct PrimaryKeysRequest {
  1: string db_name,  // required
  2: string tbl_name,  // required
  3: optional string catName,  // since 3.1
  4: optional string validWriteIdList,  // 4.0.0 to 4.1
  5: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

struct PrimaryKeysResponse {
  1: list<SQLPrimaryKey> primaryKeys,  // required
}

struct ForeignKeysRequest {
  1: string parent_db_name,
  2: string parent_tbl_name,
  3: string foreign_db_name,
  4: string foreign_tbl_name,
  5: optional string catName,  // since 3.1
  6: optional string validWriteIdList,  // 4.0.0 to 4.1
  7: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

struct ForeignKeysResponse {
  1: list<SQLForeignKey> foreignKeys,  // required
}

// Since 3.1.
struct UniqueConstraintsRequest {
  1: string catName,  // required
  2: string db_name,  // required
  3: string tbl_name,  // required
  4: optional string validWriteIdList,  // 4.0.0 to 4.1
  5: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

// Since 3.1.
struct UniqueConstraintsResponse {
  1: list<SQLUniqueConstraint> uniqueConstraints,  // required
}

// Since 3.1.
struct NotNullConstraintsRequest {
  1: string catName,  // required
  2: string db_name,  // required
  3: string tbl_name,  // required
  4: optional string validWriteIdList,  // 4.0.0 to 4.1
  5: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

// Since 3.1.
struct NotNullConstraintsResponse {
  1: list<SQLNotNullConstraint> notNullConstraints,  // required
}

// Since 3.1.
struct DefaultConstraintsRequest {
  1: string catName,  // required
  2: string db_name,  // required
  3: string tbl_name,  // required
  4: optional string validWriteIdList,  // 4.0.0 to 4.1
  5: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

// Since 3.1.
struct DefaultConstraintsResponse {
  1: list<SQLDefaultConstraint> defaultConstraints,  // required
}

// Since 3.1.
struct CheckConstraintsRequest {
  1: string catName,  // required
  2: string db_name,  // required
  3: string tbl_name,  // required
  4: optional string validWriteIdList,  // 4.0.0 to 4.1
  5: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

// Since 3.1.
struct CheckConstraintsResponse {
  1: list<SQLCheckConstraint> checkConstraints,  // required
}

// Since 4.0.0.
struct AllTableConstraintsRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: string catName,  // required
  4: optional string validWriteIdList,  // 4.0.0 to 4.1
  5: optional i64 tableId = -1,  // 4.0.0 to 4.1
}

// Since 4.0.0.
struct SQLAllTableConstraints {
  1: optional list<SQLPrimaryKey> primaryKeys,
  2: optional list<SQLForeignKey> foreignKeys,
  3: optional list<SQLUniqueConstraint> uniqueConstraints,
  4: optional list<SQLNotNullConstraint> notNullConstraints,
  5: optional list<SQLDefaultConstraint> defaultConstraints,
  6: optional list<SQLCheckConstraint> checkConstraints,
}

// Since 4.0.0.
struct AllTableConstraintsResponse {
  1: SQLAllTableConstraints allTableConstraints,  // required
}

// ----------------------------------------------------------------------------------------------------
// Functions
// ----------------------------------------------------------------------------------------------------

enum FunctionType {
  JAVA = 1,
}

enum ResourceType {
  JAR = 1,
  FILE = 2,
  ARCHIVE = 3,
}

struct ResourceUri {
  1: ResourceType resourceType,
  2: string uri,
}

struct Function {
  1: string functionName,
  2: string dbName,
  3: string className,
  4: string ownerName,
  5: PrincipalType ownerType,
  6: i32 createTime,
  7: FunctionType functionType,
  8: list<ResourceUri> resourceUris,
  9: optional string catName,
}

// Since 4.1.
struct GetFunctionsRequest {
  1: string dbName,  // required
  2: optional string catalogName,
  3: optional string pattern,
  4: optional bool returnNames = true,
}

// Since 4.1.
struct GetFunctionsResponse {
  1: optional list<string> function_names,
  2: optional list<Function> functions,
}

struct GetAllFunctionsResponse {
  1: optional list<Function> functions,
}

// ----------------------------------------------------------------------------------------------------
// Roles and privileges
// ----------------------------------------------------------------------------------------------------

struct Role {
  1: string roleName,
  2: i32 createTime,
  3: string ownerName,
}

enum GrantRevokeType {
  GRANT = 1,
  REVOKE = 2,
}

struct GrantRevokeRoleRequest {
  1: GrantRevokeType requestType,
  2: string roleName,
  3: string principalName,
  4: PrincipalType principalType,
  5: optional string grantor,
  6: optional PrincipalType grantorType,
  7: optional bool grantOption,
}

struct GrantRevokeRoleResponse {
  1: optional bool success,
}

struct GetPrincipalsInRoleRequest {
  1: string roleName,  // required
}

struct RolePrincipalGrant {
  1: string roleName,
  2: string principalName,
  3: PrincipalType principalType,
  4: bool grantOption,
  5: i32 grantTime,
  6: string grantorName,
  7: PrincipalType grantorPrincipalType,
}

struct GetPrincipalsInRoleResponse {
  1: list<RolePrincipalGrant> principalGrants,  // required
}

struct GetRoleGrantsForPrincipalRequest {
  1: string principal_name,  // required
  2: PrincipalType principal_type,  // required
}

struct GetRoleGrantsForPrincipalResponse {
  1: list<RolePrincipalGrant> principalGrants,  // required
}

enum HiveObjectType {
  GLOBAL = 1,
  DATABASE = 2,
  TABLE = 3,
  PARTITION = 4,
  COLUMN = 5,
  DATACONNECTOR = 6,
}

struct HiveObjectRef {
  1: HiveObjectType objectType,
  2: string dbName,
  3: string objectName,
  4: list<string> partValues,
  5: string columnName,
  6: optional string catName,
}

struct HiveObjectPrivilege {
  1: HiveObjectRef hiveObject,
  2: string principalName,
  3: PrincipalType principalType,
  4: PrivilegeGrantInfo grantInfo,
  5: string authorizer,  // since 3.1
}

struct PrivilegeBag {
  1: list<HiveObjectPrivilege> privileges,
}

struct GrantRevokePrivilegeRequest {
  1: GrantRevokeType requestType,
  2: PrivilegeBag privileges,
  3: optional bool revokeGrantOption,
}

struct GrantRevokePrivilegeResponse {
  1: optional bool success,
}

// ----------------------------------------------------------------------------------------------------
// Transactions and write ids
// ----------------------------------------------------------------------------------------------------

// Id 2 is a set<i64> in 2.3 and a list<i64> later; hms_cache.wire.versions writes both.
struct GetOpenTxnsResponse {
  1: i64 txn_high_water_mark,  // required
  2: list<i64> open_txns,  // required
  3: optional i64 min_open_txn,
  4: binary abortedBits,  // required; since 3.1
}

enum TxnState {
  COMMITTED = 1,
  ABORTED = 2,
  OPEN = 3,
}

struct TxnInfo {
  1: i64 id,  // required
  2: TxnState state,  // required
  3: string user,  // required
  4: string hostname,  // required
  5: optional string agentInfo = "Unknown",
  6: optional i32 heartbeatCount = 0,
  7: optional string metaInfo,
  8: optional i64 startedTime,
  9: optional i64 lastHeartbeatTime,
}

struct GetOpenTxnsInfoResponse {
  1: i64 txn_high_water_mark,  // required
  2: list<TxnInfo> open_txns,  // required
}

enum TxnType {
  DEFAULT = 0,
  REPL_CREATED = 1,
  READ_ONLY = 2,
  COMPACTION = 3,
  MATER_VIEW_REBUILD = 4,
  SOFT_DELETE = 5,
  REBALANCE_COMPACTION = 6,
}

struct OpenTxnRequest {
  1: i32 num_txns,  // required
  2: string user,  // required
  3: string hostname,  // required
  4: optional string agentInfo = "Unknown",
  5: optional string replPolicy,  // since 3.1
  6: optional list<i64> replSrcTxnIds,  // since 3.1
  7: optional TxnType txn_type = TxnType.DEFAULT,  // since 4.0.0
}

struct OpenTxnsResponse {
  1: list<i64> txn_ids,  // required
}

struct AbortTxnRequest {
  1: i64 txnid,  // required
  2: optional string replPolicy,  // since 3.1
  3: optional TxnType txn_type,  // since 4.0.0
  4: optional i64 errorCode,  // since 4.0.0
}

struct AbortTxnsRequest {
  1: list<i64> txn_ids,  // required
  2: optional i64 errorCode,  // since 4.0.0
}

// Since 4.0.0.
struct WriteEventInfo {
  1: i64 writeId,  // required
  2: string database,  // required
  3: string table,  // required
  4: string files,  // required
  5: optional string partition,
  6: optional string tableObj,
  7: optional string partitionObj,
}

// Since 4.0.0.
struct ReplLastIdInfo {
  1: string database,  // required
  2: i64 lastReplId,  // required
  3: optional string table,
  4: optional string catalog,
  5: optional list<string> partitionList,
}

// Since 4.0.0.
struct CommitTxnKeyValue {
  1: i64 tableId,  // required
  2: string key,  // required
  3: string value,  // required
}

struct CommitTxnRequest {
  1: i64 txnid,  // required
  2: optional string replPolicy,  // since 3.1
  3: optional list<WriteEventInfo> writeEventInfos,  // since 4.0.0
  4: optional ReplLastIdInfo replLastIdInfo,  // since 4.0.0
  5: optional CommitTxnKeyValue keyValue,  // since 4.0.0
  6: optional bool exclWriteEnabled = true,  // since 4.0.0
  7: optional TxnType txn_type,  // since 4.0.0
}

// Since 3.1.
struct ReplTblWriteIdStateRequest {
  1: string validWriteIdlist,  // required
  2: string user,  // required
  3: string hostName,  // required
  4: string dbName,  // required
  5: string tableName,  // required
  6: optional list<string> partNames,
}

// Since 3.1.
struct GetValidWriteIdsRequest {
  1: list<string> fullTableNames,  // required
  2: string validTxnList,  // required by 3.1
  3: optional i64 writeId,  // since 4.0.0
}

// Since 3.1.
struct TableValidWriteIds {
  1: string fullTableName,  // required
  2: i64 writeIdHighWaterMark,  // required
  3: list<i64> invalidWriteIds,  // required
  4: optional i64 minOpenWriteId,
  5: binary abortedBits,  // required
  // Not Hive's: the id of the table the list is about, so that a reader can tell a table from one created again under its
  // name. The number is far from those Hive may give next.
  100: optional i64 tableId,
}

// Since 3.1.
struct GetValidWriteIdsResponse {
  1: list<TableValidWriteIds> tblValidWriteIds,  // required
}

// Since 3.1.
struct TxnToWriteId {
  1: i64 txnId,  // required
  2: i64 writeId,  // required
}

// Since 3.1.
struct AllocateTableWriteIdsRequest {
  1: string dbName,  // required
  2: string tableName,  // required
  3: optional list<i64> txnIds,
  4: optional string replPolicy,
  5: optional list<TxnToWriteId> srcTxnToWriteIdList,
  6: optional bool reallocate,  // since 4.0.0
}

// Since 3.1.
struct AllocateTableWriteIdsResponse {
  1: list<TxnToWriteId> txnToWriteIds,  // required
}

// Since 4.0.0.
struct MaxAllocatedTableWriteIdRequest {
  1: string dbName,  // required
  2: string tableName,  // required
}

// Since 4.0.0.
struct MaxAllocatedTableWriteIdResponse {
  1: i64 maxWriteId,  // required
}

// Since 4.0.0.
struct SeedTableWriteIdsRequest {
  1: string dbName,  // required
  2: string tableName,  // required
  3: i64 seedWriteId,  // required
}

// Since 4.0.0.
struct SeedTxnIdRequest {
  1: i64 seedTxnId,  // required
}

struct HeartbeatTxnRangeRequest {
  1: i64 min,  // required
  2: i64 max,  // required
}

struct HeartbeatTxnRangeResponse {
  1: set<i64> aborted,  // required
  2: set<i64> nosuch,  // required
}

enum DataOperationType {
  SELECT = 1,
  INSERT = 2,
  UPDATE = 3,
  DELETE = 4,
  UNSET = 5,
  NO_TXN = 6,
}

// 2.3 has no write id: there the ids are 2 dbname, 3 tablename, 4 partitionnames, 5 operationType.
// hms_cache.wire.versions reads both.
struct AddDynamicPartitions {
  1: i64 txnid,  // required
  2: i64 writeid,  // required
  3: string dbname,  // required
  4: string tablename,  // required
  5: list<string> partitionnames,  // required by 3.1, 4.0.0, 4.0.1, 4.1, 4.2
  6: optional DataOperationType operationType = 5,  // since 3.1
}

// Since 4.0.0.
struct GetOpenTxnsRequest {
  1: optional list<TxnType> excludeTxnTypes,
}

// Since 4.2.
struct ReplayedTxnsForPolicyResult {
  1: map<string, string> replTxnMapEntry,
}

// ----------------------------------------------------------------------------------------------------
// Locks
// ----------------------------------------------------------------------------------------------------

enum LockType {
  SHARED_READ = 1,
  SHARED_WRITE = 2,
  EXCLUSIVE = 3,
  EXCL_WRITE = 4,
}

enum LockLevel {
  DB = 1,
  TABLE = 2,
  PARTITION = 3,
}

struct LockComponent {
  1: LockType type,  // required
  2: LockLevel level,  // required
  3: string dbname,  // required
  4: optional string tablename,
  5: optional string partitionname,
  6: optional DataOperationType operationType = 5,
  7: optional bool isTransactional,  // false by default in Hive, whose server asks whether it was sent
  8: optional bool isDynamicPartitionWrite = false,
  9: optional string catName = "hive",  // after 4.2
}

struct LockRequest {
  1: list<LockComponent> component,  // required
  2: optional i64 txnid,
  3: string user,  // required
  4: string hostname,  // required
  5: optional string agentInfo = "Unknown",
  6: optional bool zeroWaitReadEnabled = false,  // since 4.0.0
  7: optional bool exclusiveCTAS = false,  // since 4.0.0
  8: optional bool locklessReadsEnabled,  // since 4.0.0
}

enum LockState {
  ACQUIRED = 1,
  WAITING = 2,
  ABORT = 3,
  NOT_ACQUIRED = 4,
}

struct LockResponse {
  1: i64 lockid,  // required
  2: LockState state,  // required
  3: optional string errorMessage,  // since 4.0.0
}

struct CheckLockRequest {
  1: i64 lockid,  // required
  2: optional i64 txnid,
  3: optional i64 elapsed_ms,
}

struct UnlockRequest {
  1: i64 lockid,  // required
}

struct ShowLocksRequest {
  1: optional string dbname,
  2: optional string tablename,
  3: optional string partname,
  4: optional bool isExtended = false,
  5: optional i64 txnid,  // since 4.0.0
  6: optional string catname = "hive",  // after 4.2
}

// Id 17 is required by the newest readers: always fill it.
struct ShowLocksResponseElement {
  1: i64 lockid,  // required
  2: string dbname,  // required
  3: optional string tablename,
  4: optional string partname,
  5: LockState state,  // required
  6: LockType type,  // required
  7: optional i64 txnid,
  8: i64 lastheartbeat,  // required
  9: optional i64 acquiredat,
  10: string user,  // required
  11: string hostname,  // required
  12: optional i32 heartbeatCount = 0,
  13: optional string agentInfo,
  14: optional i64 blockedByExtId,
  15: optional i64 blockedByIntId,
  16: optional i64 lockIdInternal,
  17: string catname,  // required; after 4.2
}

struct ShowLocksResponse {
  1: list<ShowLocksResponseElement> locks,
}

struct HeartbeatRequest {
  1: optional i64 lockid,
  2: optional i64 txnid,
}

// After 4.2.
struct LockMaterializationRebuildRequest {
  1: string catName,  // required
  2: string dbName,  // required
  3: string tableName,  // required
  4: i64 txnId,  // required
}

// ----------------------------------------------------------------------------------------------------
// Compaction
// ----------------------------------------------------------------------------------------------------

// Since 4.0.0.
struct AbortCompactionRequest {
  1: list<i64> compactionIds,  // required
  2: optional string type,
  3: optional string poolName,
}

// Since 4.0.0.
struct AbortCompactionResponseElement {
  1: i64 compactionId,  // required
  2: optional string status,
  3: optional string message,
}

// Since 4.0.0.
struct AbortCompactResponse {
  1: map<i64, AbortCompactionResponseElement> abortedcompacts,  // required
}

enum CompactionType {
  MINOR = 1,
  MAJOR = 2,
  REBALANCE = 3,
  ABORT_TXN_CLEANUP = 4,
  SMART_OPTIMIZE = 5,
  DEFERRED_CLEANUP = 6,
}

struct CompactionRequest {
  1: string dbname,  // required
  2: string tablename,  // required
  3: optional string partitionname,
  4: CompactionType type,  // required
  5: optional string runas,
  6: optional map<string, string> properties,
  7: optional string initiatorId,  // since 4.0.0
  8: optional string initiatorVersion,  // since 4.0.0
  9: optional string poolName,  // since 4.0.0
  10: optional i32 numberOfBuckets,  // since 4.0.0
  11: optional string orderByClause,  // since 4.0.0
}

struct CompactionResponse {
  1: i64 id,  // required
  2: string state,  // required
  3: bool accepted,  // required
  4: optional string errormessage,  // since 4.0.0
}

struct ShowCompactRequest {
  1: optional i64 id,  // since 4.0.0
  2: optional string poolName,  // since 4.0.0
  3: optional string dbName,  // since 4.0.0
  4: optional string tbName,  // since 4.0.0
  5: optional string partName,  // since 4.0.0
  6: optional CompactionType type,  // since 4.0.0
  7: optional string state,  // since 4.0.0
  8: optional i64 limit,  // since 4.0.0
  9: optional string order,  // since 4.0.0
}

struct ShowCompactResponseElement {
  1: string dbname,  // required
  2: string tablename,  // required
  3: optional string partitionname,
  4: CompactionType type,  // required
  5: string state,  // required
  6: optional string workerid,
  7: optional i64 start,
  8: optional string runAs,
  9: optional i64 hightestTxnId,
  10: optional string metaInfo,
  11: optional i64 endTime,
  12: optional string hadoopJobId = "None",
  13: optional i64 id,
  14: optional string errorMessage,  // since 4.0.0
  15: optional i64 enqueueTime,  // since 4.0.0
  16: optional string workerVersion,  // since 4.0.0
  17: optional string initiatorId,  // since 4.0.0
  18: optional string initiatorVersion,  // since 4.0.0
  19: optional i64 cleanerStart,  // since 4.0.0
  20: optional string poolName,  // since 4.0.0
  21: optional i64 nextTxnId,  // since 4.0.0
  22: optional i64 txnId,  // since 4.0.0
  23: optional i64 commitTime,  // since 4.0.0
  24: optional i64 hightestWriteId,  // since 4.0.0
}

struct ShowCompactResponse {
  1: list<ShowCompactResponseElement> compacts,  // required
}

// Since 4.0.0.
struct CompactionInfoStruct {
  1: i64 id,  // required
  2: string dbname,  // required
  3: string tablename,  // required
  4: optional string partitionname,
  5: CompactionType type,  // required
  6: optional string runas,
  7: optional string properties,
  8: optional bool toomanyaborts,
  9: optional string state,
  10: optional string workerId,
  11: optional i64 start,
  12: optional i64 highestWriteId,
  13: optional string errorMessage,
  14: optional bool hasoldabort,
  15: optional i64 enqueueTime,
  16: optional i64 retryRetention,
  17: optional string poolname,
  18: optional i32 numberOfBuckets,
  19: optional string orderByClause,
}

// Since 4.0.0.
struct OptionalCompactionInfoStruct {
  1: optional CompactionInfoStruct ci,
}

// Since 4.0.0.
struct FindNextCompactRequest {
  1: optional string workerId,
  2: optional string workerVersion,
  3: optional string poolName,
}

enum CompactionMetricsMetricType {
  NUM_OBSOLETE_DELTAS = 0,
  NUM_DELTAS = 1,
  NUM_SMALL_DELTAS = 2,
}

// Since 4.0.0.
struct CompactionMetricsDataStruct {
  1: string dbname,  // required
  2: string tblname,  // required
  3: optional string partitionname,
  4: CompactionMetricsMetricType type,  // required
  5: i32 metricvalue,  // required
  6: i32 version,  // required
  7: i32 threshold,  // required
}

// Since 4.0.0.
struct CompactionMetricsDataRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: optional string partitionName,
  4: CompactionMetricsMetricType type,  // required
}

// Since 4.0.0.
struct GetLatestCommittedCompactionInfoRequest {
  1: string dbname,  // required
  2: string tablename,  // required
  3: optional list<string> partitionnames,
  4: optional i64 lastCompactionId,
}

// Since 4.0.0.
struct GetLatestCommittedCompactionInfoResponse {
  1: list<CompactionInfoStruct> compactions,  // required
}

// ----------------------------------------------------------------------------------------------------
// Notification log
// ----------------------------------------------------------------------------------------------------

struct NotificationEventRequest {
  1: i64 lastEvent,  // required
  2: optional i32 maxEvents,
  3: optional list<string> eventTypeSkipList,  // since 4.0.0
  4: optional string catName,  // since 4.0.0
  5: optional string dbName,  // since 4.0.0
  6: optional list<string> tableNames,  // since 4.0.0
  7: optional list<string> eventTypeList,  // since 4.1
}

struct NotificationEvent {
  1: i64 eventId,  // required
  2: i32 eventTime,  // required
  3: string eventType,  // required
  4: optional string dbName,
  5: optional string tableName,
  6: string message,  // required
  7: optional string messageFormat,
  8: optional string catName,  // since 3.1
}

struct NotificationEventResponse {
  1: list<NotificationEvent> events,  // required
}

struct CurrentNotificationEventId {
  1: i64 eventId,  // required
}

// Since 3.1.
struct NotificationEventsCountRequest {
  1: i64 fromEventId,  // required
  2: string dbName,  // required
  3: optional string catName,
  4: optional i64 toEventId,  // since 4.0.0
  5: optional i64 limit,  // since 4.0.0
  6: optional list<string> tableNames,  // since 4.0.0
}

// Since 3.1.
struct NotificationEventsCountResponse {
  1: i64 eventsCount,  // required
}

// In 2.3 id 1 is filesAdded and id 2 filesAddedChecksum. hms_cache.wire.versions reads both.
struct InsertEventRequestData {
  1: bool replace,  // required by 2.3
  2: list<string> filesAdded,  // required by 3.1, 4.0.0, 4.0.1, 4.1, 4.2
  3: optional list<string> filesAddedChecksum,  // since 3.1
  4: optional list<string> subDirectoryList,  // since 4.0.0
  5: optional list<string> partitionVal,  // since 4.0.0
}

union FireEventRequestData {
  1: InsertEventRequestData insertData,
  2: list<InsertEventRequestData> insertDatas,  // since 4.0.0
  3: bool refreshEvent,  // since 4.0.0
}

struct FireEventRequest {
  1: bool successful,  // required
  2: FireEventRequestData data,  // required
  3: optional string dbName,
  4: optional string tableName,
  5: optional list<string> partitionVals,
  6: optional string catName,  // since 3.1
  7: optional map<string, string> tblParams,  // since 4.0.0
  8: optional list<list<string>> batchPartitionValsForRefresh,  // since 4.2
}

struct FireEventResponse {
  1: list<i64> eventIds,  // since 4.0.0
}

// Since 4.0.0.
struct WriteNotificationLogRequest {
  1: i64 txnId,  // required
  2: i64 writeId,  // required
  3: string db,  // required
  4: string table,  // required
  5: InsertEventRequestData fileInfo,  // required
  6: optional list<string> partitionVals,
}

// Since 4.0.0.
struct WriteNotificationLogResponse {
}

// Since 4.0.0.
struct WriteNotificationLogBatchRequest {
  1: string catalog,  // required
  2: string db,  // required
  3: string table,  // required
  4: list<WriteNotificationLogRequest> requestList,  // required
}

// Since 4.0.0.
struct WriteNotificationLogBatchResponse {
}

// Since 4.0.0.
struct GetAllWriteEventInfoRequest {
  1: i64 txnId,  // required
  2: optional string dbName,
  3: optional string tableName,
}

// ----------------------------------------------------------------------------------------------------
// Workload management
// ----------------------------------------------------------------------------------------------------

enum WMResourcePlanStatus {
  ACTIVE = 1,
  ENABLED = 2,
  DISABLED = 3,
}

// Since 3.1.
struct WMResourcePlan {
  1: string name,  // required
  2: optional WMResourcePlanStatus status,
  3: optional i32 queryParallelism,
  4: optional string defaultPoolPath,
  5: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMCreateResourcePlanRequest {
  1: optional WMResourcePlan resourcePlan,
  2: optional string copyFrom,
}

// Since 3.1.
struct WMCreateResourcePlanResponse {
}

// Since 3.1.
struct WMGetResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMPool {
  1: string resourcePlanName,  // required
  2: string poolPath,  // required
  3: optional double allocFraction,
  4: optional i32 queryParallelism,
  5: optional string schedulingPolicy,
  6: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMMapping {
  1: string resourcePlanName,  // required
  2: string entityType,  // required
  3: string entityName,  // required
  4: optional string poolPath,
  5: optional i32 ordering,
  6: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMTrigger {
  1: string resourcePlanName,  // required
  2: string triggerName,  // required
  3: optional string triggerExpression,
  4: optional string actionExpression,
  5: optional bool isInUnmanaged,
  6: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMPoolTrigger {
  1: string pool,  // required
  2: string trigger,  // required
  3: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMFullResourcePlan {
  1: WMResourcePlan plan,  // required
  2: list<WMPool> pools,  // required
  3: optional list<WMMapping> mappings,
  4: optional list<WMTrigger> triggers,
  5: optional list<WMPoolTrigger> poolTriggers,
}

// Since 3.1.
struct WMGetResourcePlanResponse {
  1: optional WMFullResourcePlan resourcePlan,
}

// Since 3.1.
struct WMGetActiveResourcePlanRequest {
  1: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMGetActiveResourcePlanResponse {
  1: optional WMFullResourcePlan resourcePlan,
}

// Since 3.1.
struct WMGetAllResourcePlanRequest {
  1: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMGetAllResourcePlanResponse {
  1: optional list<WMResourcePlan> resourcePlans,
}

// Since 3.1.
struct WMNullableResourcePlan {
  1: optional string name,
  2: optional WMResourcePlanStatus status,
  4: optional i32 queryParallelism,
  5: optional bool isSetQueryParallelism,
  6: optional string defaultPoolPath,
  7: optional bool isSetDefaultPoolPath,
  8: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMAlterResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional WMNullableResourcePlan resourcePlan,
  3: optional bool isEnableAndActivate,
  4: optional bool isForceDeactivate,
  5: optional bool isReplace,
  6: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMAlterResourcePlanResponse {
  1: optional WMFullResourcePlan fullResourcePlan,
}

// Since 3.1.
struct WMValidateResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMValidateResourcePlanResponse {
  1: optional list<string> errors,
  2: optional list<string> warnings,
}

// Since 3.1.
struct WMDropResourcePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMDropResourcePlanResponse {
}

// Since 3.1.
struct WMCreateTriggerRequest {
  1: optional WMTrigger trigger,
}

// Since 3.1.
struct WMCreateTriggerResponse {
}

// Since 3.1.
struct WMAlterTriggerRequest {
  1: optional WMTrigger trigger,
}

// Since 3.1.
struct WMAlterTriggerResponse {
}

// Since 3.1.
struct WMDropTriggerRequest {
  1: optional string resourcePlanName,
  2: optional string triggerName,
  3: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMDropTriggerResponse {
}

// Since 3.1.
struct WMGetTriggersForResourePlanRequest {
  1: optional string resourcePlanName,
  2: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMGetTriggersForResourePlanResponse {
  1: optional list<WMTrigger> triggers,
}

// Since 3.1.
struct WMCreatePoolRequest {
  1: optional WMPool pool,
}

// Since 3.1.
struct WMCreatePoolResponse {
}

// Since 3.1.
struct WMNullablePool {
  1: string resourcePlanName,  // required
  2: string poolPath,  // required
  3: optional double allocFraction,
  4: optional i32 queryParallelism,
  5: optional string schedulingPolicy,
  6: optional bool isSetSchedulingPolicy,
  7: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMAlterPoolRequest {
  1: optional WMNullablePool pool,
  2: optional string poolPath,
}

// Since 3.1.
struct WMAlterPoolResponse {
}

// Since 3.1.
struct WMDropPoolRequest {
  1: optional string resourcePlanName,
  2: optional string poolPath,
  3: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMDropPoolResponse {
}

// Since 3.1.
struct WMCreateOrUpdateMappingRequest {
  1: optional WMMapping mapping,
  2: optional bool update,
}

// Since 3.1.
struct WMCreateOrUpdateMappingResponse {
}

// Since 3.1.
struct WMDropMappingRequest {
  1: optional WMMapping mapping,
}

// Since 3.1.
struct WMDropMappingResponse {
}

// Since 3.1.
struct WMCreateOrDropTriggerToPoolMappingRequest {
  1: optional string resourcePlanName,
  2: optional string triggerName,
  3: optional string poolPath,
  4: optional bool drop,
  5: optional string ns,  // since 4.0.0
}

// Since 3.1.
struct WMCreateOrDropTriggerToPoolMappingResponse {
}

// ----------------------------------------------------------------------------------------------------
// Scheduled queries
// ----------------------------------------------------------------------------------------------------

// Since 4.0.0.
struct ScheduledQueryPollRequest {
  1: string clusterNamespace,  // required
}

// Since 4.0.0.
struct ScheduledQueryKey {
  1: string scheduleName,  // required
  2: string clusterNamespace,  // required
}

// Since 4.0.0.
struct ScheduledQueryPollResponse {
  1: optional ScheduledQueryKey scheduleKey,
  2: optional i64 executionId,
  3: optional string query,
  4: optional string user,
}

enum ScheduledQueryMaintenanceRequestType {
  CREATE = 1,
  ALTER = 2,
  DROP = 3,
}

// Since 4.0.0.
struct ScheduledQuery {
  1: ScheduledQueryKey scheduleKey,  // required
  2: optional bool enabled,
  4: optional string schedule,
  5: optional string user,
  6: optional string query,
  7: optional i32 nextExecution,
}

// Since 4.0.0.
struct ScheduledQueryMaintenanceRequest {
  1: ScheduledQueryMaintenanceRequestType type,  // required
  2: ScheduledQuery scheduledQuery,  // required
}

enum QueryState {
  INITED = 0,
  EXECUTING = 1,
  FAILED = 2,
  FINISHED = 3,
  TIMED_OUT = 4,
  AUTO_DISABLED = 5,
}

// Since 4.0.0.
struct ScheduledQueryProgressInfo {
  1: i64 scheduledExecutionId,  // required
  2: QueryState state,  // required
  3: string executorQueryId,  // required
  4: optional string errorMessage,
}

// ----------------------------------------------------------------------------------------------------
// Runtime statistics
// ----------------------------------------------------------------------------------------------------

// Since 3.1.
struct RuntimeStat {
  1: optional i32 createTime,
  2: i32 weight,  // required
  3: binary payload,  // required
}

// Since 3.1.
struct GetRuntimeStatsRequest {
  1: i32 maxWeight,  // required
  2: i32 maxCreateTime,  // required
}

// ----------------------------------------------------------------------------------------------------
// Schema registry
// ----------------------------------------------------------------------------------------------------

enum SchemaType {
  HIVE = 1,
  AVRO = 2,
}

enum SchemaCompatibility {
  NONE = 1,
  BACKWARD = 2,
  FORWARD = 3,
  BOTH = 4,
}

enum SchemaValidation {
  LATEST = 1,
  ALL = 2,
}

// Since 3.1.
struct ISchema {
  1: SchemaType schemaType,
  2: string name,
  3: string catName,
  4: string dbName,
  5: SchemaCompatibility compatibility,
  6: SchemaValidation validationLevel,
  7: bool canEvolve,
  8: optional string schemaGroup,
  9: optional string description,
}

// Since 3.1.
struct ISchemaName {
  1: string catName,
  2: string dbName,
  3: string schemaName,
}

// Since 3.1.
struct AlterISchemaRequest {
  1: ISchemaName name,
  3: ISchema newSchema,
}

enum SchemaVersionState {
  INITIATED = 1,
  START_REVIEW = 2,
  CHANGES_REQUIRED = 3,
  REVIEWED = 4,
  ENABLED = 5,
  DISABLED = 6,
  ARCHIVED = 7,
  DELETED = 8,
}

// Since 3.1.
struct SchemaVersion {
  1: ISchemaName schema,
  2: i32 version,
  3: i64 createdAt,
  4: list<FieldSchema> cols,
  5: optional SchemaVersionState state,
  6: optional string description,
  7: optional string schemaText,
  8: optional string fingerprint,
  9: optional string name,
  10: optional SerDeInfo serDe,
}

// Since 3.1.
struct SchemaVersionDescriptor {
  1: ISchemaName schema,
  2: i32 version,
}

// Since 3.1.
struct FindSchemasByColsRqst {
  1: optional string colName,
  2: optional string colNamespace,
  3: optional string type,
}

// Since 3.1.
struct FindSchemasByColsResp {
  1: list<SchemaVersionDescriptor> schemaVersions,
}

// Since 3.1.
struct MapSchemaVersionToSerdeRequest {
  1: SchemaVersionDescriptor schemaVersion,
  2: string serdeName,
}

// Since 3.1.
struct SetSchemaVersionStateRequest {
  1: SchemaVersionDescriptor schemaVersion,
  2: SchemaVersionState state,
}

// Since 3.1.
struct GetSerdeRequest {
  1: string serdeName,
}

// ----------------------------------------------------------------------------------------------------
// Configuration, types, indexes, file metadata, data connectors, procedures, packages, replication, properties
// ----------------------------------------------------------------------------------------------------

// Since 4.0.0.
struct DataConnector {
  1: string name,
  2: string type,
  3: string url,
  4: optional string description,
  5: optional map<string, string> parameters,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
  8: optional i32 createTime,
}

// Since 4.0.0.
struct CreateDataConnectorRequest {
  1: DataConnector connector,  // required by 4.0.1, 4.1, 4.2
}

// Since 4.0.0.
struct GetDataConnectorRequest {
  1: string connectorName,  // required
}

// Since 4.0.1.
struct DropDataConnectorRequest {
  1: string connectorName,  // required
  2: optional bool ifNotExists,
  3: optional bool checkReferences,
}

// Since 4.0.1.
struct AlterDataConnectorRequest {
  1: string connectorName,  // required
  2: DataConnector newConnector,  // required
}

struct Type {
  1: string name,
  2: optional string type1,
  3: optional string type2,
  4: optional list<FieldSchema> fields,
}

// Since 4.0.0.
struct PropertyGetRequest {
  1: string nameSpace,  // required
  2: string mapPrefix,
  3: optional string mapPredicate,
  4: optional list<string> mapSelection,
}

// Since 4.0.0.
struct PropertyGetResponse {
  1: map<string, map<string, string>> properties,
}

// Since 4.0.0.
struct PropertySetRequest {
  1: string nameSpace,  // required
  2: map<string, string> propertyMap,
}

// Since 3.1.
struct CmRecycleRequest {
  1: string dataPath,  // required
  2: bool purge,  // required
}

// Since 3.1.
struct CmRecycleResponse {
}

enum FileMetadataExprType {
  ORC_SARG = 1,
}

struct GetFileMetadataByExprRequest {
  1: list<i64> fileIds,  // required
  2: binary expr,  // required
  3: optional bool doGetFooters,
  4: optional FileMetadataExprType type,
}

struct MetadataPpdResult {
  1: optional binary metadata,
  2: optional binary includeBitset,
}

struct GetFileMetadataByExprResult {
  1: map<i64, MetadataPpdResult> metadata,  // required
  2: bool isSupported,  // required
}

struct GetFileMetadataRequest {
  1: list<i64> fileIds,  // required
}

struct GetFileMetadataResult {
  1: map<i64, binary> metadata,  // required
  2: bool isSupported,  // required
}

struct PutFileMetadataRequest {
  1: list<i64> fileIds,  // required
  2: list<binary> metadata,  // required
  3: optional FileMetadataExprType type,
}

struct PutFileMetadataResult {
}

struct ClearFileMetadataRequest {
  1: list<i64> fileIds,  // required
}

struct ClearFileMetadataResult {
}

struct CacheFileMetadataRequest {
  1: string dbName,  // required
  2: string tblName,  // required
  3: optional string partName,
  4: optional bool isAllParts,
}

struct CacheFileMetadataResult {
  1: bool isSupported,  // required
}

// Since 4.0.0.
struct ReplicationMetrics {
  1: i64 scheduledExecutionId,  // required
  2: string policy,  // required
  3: i64 dumpExecutionId,  // required
  4: optional string metadata,
  5: optional string progress,
  6: optional string messageFormat,
}

// Since 4.0.0.
struct ReplicationMetricList {
  1: list<ReplicationMetrics> replicationMetricList,  // required
}

// Since 4.0.0.
struct GetReplicationMetricsRequest {
  1: optional i64 scheduledExecutionId,
  2: optional string policy,
  3: optional i64 dumpExecutionId,
}

// Since 4.0.0.
struct StoredProcedure {
  1: string name,
  2: string dbName,
  3: string catName,
  4: string ownerName,
  5: string source,
}

// Since 4.0.0.
struct StoredProcedureRequest {
  1: string catName,  // required
  2: string dbName,  // required
  3: string procName,  // required
}

// Since 4.0.0.
struct ListStoredProcedureRequest {
  1: string catName,  // required
  2: optional string dbName,
}

// Since 4.0.0.
struct GetPackageRequest {
  1: string catName,  // required
  2: string dbName,  // required
  3: string packageName,  // required
}

// Since 4.0.0.
struct Package {
  1: string catName,
  2: string dbName,
  3: string packageName,
  4: string ownerName,
  5: string header,
  6: string body,
}

// Since 4.0.0.
struct AddPackageRequest {
  1: string catName,
  2: string dbName,
  3: string packageName,
  4: string ownerName,
  5: string header,
  6: string body,
}

// Since 4.0.0.
struct ListPackageRequest {
  1: string catName,  // required
  2: optional string dbName,
}

// Since 4.0.0.
struct DropPackageRequest {
  1: string catName,  // required
  2: string dbName,  // required
  3: string packageName,  // required
}

// 2.3 only.
struct Index {
  1: string indexName,
  2: string indexHandlerClass,
  3: string dbName,
  4: string origTableName,
  5: i32 createTime,
  6: i32 lastAccessTime,
  7: string indexTableName,
  8: StorageDescriptor sd,
  9: map<string, string> parameters,
  10: bool deferredRebuild,
}

// Since 3.1.
struct BasicTxnInfo {
  1: bool isnull,  // required
  2: optional i64 time,
  3: optional i64 txnid,
  4: optional string dbname,
  5: optional string tablename,
  6: optional string partitionname,
}

// Since 4.0.0.
struct CompactionMetricsDataResponse {
  1: optional CompactionMetricsDataStruct data,
}

struct Schema {
  1: list<FieldSchema> fieldSchemas,
  2: map<string, string> properties,
}

struct Version {
  1: string version,
  2: string comments,
}

enum EventRequestType {
  INSERT = 1,
  UPDATE = 2,
  DELETE = 3,
}

enum GetTablesExtRequestFields {
  ACCESS_TYPE = 1,
  PROCESSOR_CAPABILITIES = 2,
  ALL = 2147483647,
}

enum WMPoolSchedulingPolicy {
  FAIR = 1,
  FIFO = 2,
}

// ----------------------------------------------------------------------------------------------------
// The service
// ----------------------------------------------------------------------------------------------------

service ThriftHiveMetastore extends fb303.FacebookService {

  // Catalogs.

  // Since 3.1.
  void create_catalog(1: CreateCatalogRequest catalog)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  // Since 3.1.
  void alter_catalog(1: AlterCatalogRequest rqst)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  GetCatalogResponse get_catalog(1: GetCatalogRequest catName)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  GetCatalogsResponse get_catalogs() throws (1: MetaException o1)
  // Since 3.1.
  void drop_catalog(1: DropCatalogRequest catName)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)

  // Databases.
  // A name argument may carry its catalog as `@catalog#database` (Hive 3.0 and later clients).

  void create_database(1: Database database)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  // Since 4.0.1.
  void create_database_req(1: CreateDatabaseRequest createDatabaseRequest)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.0.
  Database get_database_req(1: GetDatabaseRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void drop_database(1: string name, 2: bool deleteData, 3: bool cascade)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 4.0.0. No result until 4.2: always write the result, old clients skip it and newer ones need it.
  AsyncOperationResp drop_database_req(1: DropDatabaseRequest req)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  list<string> get_databases(1: string pattern) throws (1: MetaException o1)
  list<string> get_all_databases() throws (1: MetaException o1)
  // Since 4.1.
  GetDatabaseObjectsResponse get_databases_req(1: GetDatabaseObjectsRequest request) throws (1: MetaException o1)
  void alter_database(1: string dbname, 2: Database db) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.1.
  void alter_database_req(1: AlterDatabaseRequest alterDbReq)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)

  // Tables, views, materialized views.
  // `get_table` and `get_table_objects_by_name` are gone from Hive 4.0.1 and later, although Spark and Iceberg call
  // them: they stay here.

  list<FieldSchema> get_fields(1: string db_name, 2: string table_name)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  list<FieldSchema> get_fields_with_environment_context(
      1: string db_name, 2: string table_name, 3: EnvironmentContext environment_context)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  // Since 4.0.0.
  GetFieldsResponse get_fields_req(1: GetFieldsRequest req)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  list<FieldSchema> get_schema(1: string db_name, 2: string table_name)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  list<FieldSchema> get_schema_with_environment_context(
      1: string db_name, 2: string table_name, 3: EnvironmentContext environment_context)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  // Since 4.0.0.
  GetSchemaResponse get_schema_req(1: GetSchemaRequest req)
      throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  void create_table(1: Table tbl)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: NoSuchObjectException o4)
  void create_table_with_environment_context(1: Table tbl, 2: EnvironmentContext environment_context)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: NoSuchObjectException o4)
  // 2.3 knows arguments 1 to 3.
  void create_table_with_constraints(
      1: Table tbl, 2: list<SQLPrimaryKey> primaryKeys, 3: list<SQLForeignKey> foreignKeys,
      4: list<SQLUniqueConstraint> uniqueConstraints, 5: list<SQLNotNullConstraint> notNullConstraints,
      6: list<SQLDefaultConstraint> defaultConstraints, 7: list<SQLCheckConstraint> checkConstraints)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: NoSuchObjectException o4)
  // Since 4.0.0.
  void create_table_req(1: CreateTableRequest request)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: NoSuchObjectException o4)
  // Since 4.0.0.
  Table translate_table_dryrun(1: CreateTableRequest request)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: NoSuchObjectException o4)
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o3)
  void drop_table_with_environment_context(
      1: string dbname, 2: string name, 3: bool deleteData, 4: EnvironmentContext environment_context)
      throws (1: NoSuchObjectException o1, 2: MetaException o3)
  // Since 4.0.1. No result until 4.2: always write the result, old clients skip it and newer ones need it.
  AsyncOperationResp drop_table_req(1: DropTableRequest dropTableReq)
      throws (1: NoSuchObjectException o1, 2: MetaException o3)
  // Since 3.1.
  void truncate_table(1: string dbName, 2: string tableName, 3: list<string> partNames) throws (1: MetaException o1)
  // Since 4.0.0.
  TruncateTableResponse truncate_table_req(1: TruncateTableRequest req) throws (1: MetaException o1)
  list<string> get_tables(1: string db_name, 2: string pattern) throws (1: MetaException o1)
  list<string> get_tables_by_type(1: string db_name, 2: string pattern, 3: string tableType)
      throws (1: MetaException o1)
  // Since 4.0.0.
  list<Table> get_all_materialized_view_objects_for_rewriting() throws (1: MetaException o1)
  // Since 3.1.
  list<string> get_materialized_views_for_rewriting(1: string db_name) throws (1: MetaException o1)
  list<TableMeta> get_table_meta(1: string db_patterns, 2: string tbl_patterns, 3: list<string> tbl_types)
      throws (1: MetaException o1)
  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1)
  // Since 4.0.0.
  list<ExtendedTableInfo> get_tables_ext(1: GetTablesExtRequest req) throws (1: MetaException o1)
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetTablesResult get_table_objects_by_name_req(1: GetTablesRequest req)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  // Since 3.1.
  Materialization get_materialization_invalidation_info(
      1: CreationMetadata creation_metadata, 2: string validTxnList)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  // Since 3.1.
  void update_creation_metadata(
      1: string catName, 2: string dbname, 3: string tbl_name, 4: CreationMetadata creation_metadata)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  list<string> get_table_names_by_filter(1: string dbname, 2: string filter, 3: i16 max_tables)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  void alter_table(1: string dbname, 2: string tbl_name, 3: Table new_tbl)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_table_with_environment_context(
      1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: EnvironmentContext environment_context)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_table_with_cascade(1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: bool cascade)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  // Since 4.0.0.
  AlterTableResponse alter_table_req(1: AlterTableRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  // After 4.2.
  void update_table_params(1: list<TableParamsUpdate> updates) throws (1: MetaException o1)
  // Until 4.0.0.
  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Until 4.0.0. 3.1 and 4.0 declare no exceptions: answer a list whenever possible.
  list<Table> get_table_objects_by_name(1: string dbname, 2: list<string> tbl_names)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)

  // Partitions.
  // One task, many spellings: positional calls (2.3, Spark, Iceberg) and request structs (4.x).

  Partition add_partition(1: Partition new_part)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition add_partition_with_environment_context(1: Partition new_part, 2: EnvironmentContext environment_context)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  i32 add_partitions(1: list<Partition> new_parts)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  i32 add_partitions_pspec(1: list<PartitionSpec> new_parts)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: EnvironmentContext environment_context)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  // Since 4.0.1.
  Partition append_partition_req(1: AppendPartitionsRequest appendPartitionsReq)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_by_name_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: EnvironmentContext environment_context)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  bool drop_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData, 5: EnvironmentContext
      environment_context) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.1.
  bool drop_partition_req(1: DropPartitionRequest dropPartitionReq)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_by_name_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData, 5: EnvironmentContext
      environment_context) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  DropPartitionsResult drop_partitions_req(1: DropPartitionsRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  Partition get_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  GetPartitionResponse get_partition_req(1: GetPartitionRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Partition exchange_partition(
      1: map<string, string> partitionSpecs, 2: string source_db, 3: string source_table_name, 4: string dest_db,
      5: string dest_table_name)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: InvalidInputException o4)
  list<Partition> exchange_partitions(
      1: map<string, string> partitionSpecs, 2: string source_db, 3: string source_table_name, 4: string dest_db,
      5: string dest_table_name)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: InvalidInputException o4)
  Partition get_partition_with_auth(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: string user_name, 5: list<string>
      group_names) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Partition get_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.0.
  PartitionsResponse get_partitions_req(1: PartitionsRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<Partition> get_partitions_with_auth(
      1: string db_name, 2: string tbl_name, 3: i16 max_parts, 4: string user_name, 5: list<string> group_names)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<PartitionSpec> get_partitions_pspec(1: string db_name, 2: string tbl_name, 3: i32 max_parts)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // 2.3 declares MetaException under id 1: always answer with id 1, both structs are one string.
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.1.
  list<string> fetch_partition_names_req(1: PartitionsRequest partitionReq)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  PartitionValuesResponse get_partition_values(1: PartitionValuesRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_ps(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_ps_with_auth(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts, 5: string user_name,
      6: list<string> group_names) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.0.
  GetPartitionsPsWithAuthResponse get_partitions_ps_with_auth_req(1: GetPartitionsPsWithAuthRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<string> get_partition_names_ps(
      1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  GetPartitionNamesPsResponse get_partition_names_ps_req(1: GetPartitionNamesPsRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  list<string> get_partition_names_req(1: PartitionsByExprRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_by_filter(
      1: string db_name, 2: string tbl_name, 3: string filter, 4: i16 max_parts)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  list<Partition> get_partitions_by_filter_req(1: GetPartitionsByFilterRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<PartitionSpec> get_part_specs_by_filter(
      1: string db_name, 2: string tbl_name, 3: string filter, 4: i32 max_parts)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  PartitionsByExprResult get_partitions_by_expr(1: PartitionsByExprRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  PartitionsSpecByExprResult get_partitions_spec_by_expr(1: PartitionsByExprRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  i32 get_num_partitions_by_filter(1: string db_name, 2: string tbl_name, 3: string filter)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3)
  // Since 4.0.0.
  GetPartitionsByNamesResult get_partitions_by_names_req(1: GetPartitionsByNamesRequest req)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3)
  void alter_partition(1: string db_name, 2: string tbl_name, 3: Partition new_part)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_partitions_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts, 4: EnvironmentContext environment_context)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  // Since 4.0.0.
  AlterPartitionsResponse alter_partitions_req(1: AlterPartitionsRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_partition_with_environment_context(
      1: string db_name, 2: string tbl_name, 3: Partition new_part, 4: EnvironmentContext environment_context)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  void rename_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: Partition new_part)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  // Since 4.0.0.
  RenamePartitionResponse rename_partition_req(1: RenamePartitionRequest req)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  bool partition_name_has_valid_characters(1: list<string> part_vals, 2: bool throw_exception)
      throws (1: MetaException o1)
  list<string> partition_name_to_vals(1: string part_name) throws (1: MetaException o1)
  map<string, string> partition_name_to_spec(1: string part_name) throws (1: MetaException o1)
  void markPartitionForEvent(
      1: string db_name, 2: string tbl_name, 3: map<string, string> part_vals, 4: PartitionEventType eventType)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: UnknownDBException o3, 4: UnknownTableException
      o4, 5: UnknownPartitionException o5, 6: InvalidPartitionException o6)
  bool isPartitionMarkedForEvent(
      1: string db_name, 2: string tbl_name, 3: map<string, string> part_vals, 4: PartitionEventType eventType)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: UnknownDBException o3, 4: UnknownTableException
      o4, 5: UnknownPartitionException o5, 6: InvalidPartitionException o6)
  // Since 4.0.0.
  GetPartitionsResponse get_partitions_with_specs(1: GetPartitionsRequest request) throws (1: MetaException o1)

  // Column statistics.
  // Bit vectors were `string` in 2.3; the bytes are the same, but they are no UTF-8 text.

  bool update_table_column_statistics(1: ColumnStatistics stats_obj)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: InvalidInputException o4)
  bool update_partition_column_statistics(1: ColumnStatistics stats_obj)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: InvalidInputException o4)
  // Since 4.0.0.
  SetPartitionsStatsResponse update_table_column_statistics_req(1: SetPartitionsStatsRequest req)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: InvalidInputException o4)
  // Since 4.0.0.
  SetPartitionsStatsResponse update_partition_column_statistics_req(1: SetPartitionsStatsRequest req)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: InvalidInputException o4)
  // Since 4.0.0.
  void update_transaction_statistics(1: UpdateTransactionalStatsRequest req) throws (1: MetaException o1)
  ColumnStatistics get_table_column_statistics(1: string db_name, 2: string tbl_name, 3: string col_name)
      throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidInputException o3,
      4: InvalidObjectException o4)
  ColumnStatistics get_partition_column_statistics(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: string col_name)
      throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidInputException o3,
      4: InvalidObjectException o4)
  TableStatsResult get_table_statistics_req(1: TableStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  PartitionsStatsResult get_partitions_statistics_req(1: PartitionsStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  AggrStats get_aggr_stats_for(1: PartitionsStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool set_aggr_stats_for(1: SetPartitionsStatsRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: InvalidInputException o4)
  // Clients before 4.0 send no engine; absent means hive.
  bool delete_partition_column_statistics(
      1: string db_name, 2: string tbl_name, 3: string part_name, 4: string col_name, 5: string engine)
      throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3,
      4: InvalidInputException o4)
  // Clients before 4.0 send no engine; absent means hive.
  bool delete_table_column_statistics(1: string db_name, 2: string tbl_name, 3: string col_name, 4: string engine)
      throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3,
      4: InvalidInputException o4)
  // Since 4.1.
  bool delete_column_statistics_req(1: DeleteColumnStatisticsRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3,
      4: InvalidInputException o4)

  // Constraints.
  // Several request structs require catName. Ids 4 to 7 held a write id list and a table id from 4.0 on; never reuse
  // them.

  void drop_constraint(1: DropConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  void add_primary_key(1: AddPrimaryKeyRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void add_foreign_key(1: AddForeignKeyRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void add_unique_constraint(1: AddUniqueConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void add_not_null_constraint(1: AddNotNullConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void add_default_constraint(1: AddDefaultConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void add_check_constraint(1: AddCheckConstraintRequest req)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  PrimaryKeysResponse get_primary_keys(1: PrimaryKeysRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  ForeignKeysResponse get_foreign_keys(1: ForeignKeysRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 3.1.
  UniqueConstraintsResponse get_unique_constraints(1: UniqueConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 3.1.
  NotNullConstraintsResponse get_not_null_constraints(1: NotNullConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 3.1.
  DefaultConstraintsResponse get_default_constraints(1: DefaultConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 3.1.
  CheckConstraintsResponse get_check_constraints(1: CheckConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  AllTableConstraintsResponse get_all_table_constraints(1: AllTableConstraintsRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)

  // Functions.

  void create_function(1: Function func)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
      4: NoSuchObjectException o4)
  void drop_function(1: string dbName, 2: string funcName) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  void alter_function(1: string dbName, 2: string funcName, 3: Function newFunc)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  list<string> get_functions(1: string dbName, 2: string pattern) throws (1: MetaException o1)
  // Since 4.1.
  GetFunctionsResponse get_functions_req(1: GetFunctionsRequest request) throws (1: MetaException o1)
  Function get_function(1: string dbName, 2: string funcName)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetAllFunctionsResponse get_all_functions() throws (1: MetaException o1)

  // Roles and privileges.

  bool create_role(1: Role role) throws (1: MetaException o1)
  bool drop_role(1: string role_name) throws (1: MetaException o1)
  list<string> get_role_names() throws (1: MetaException o1)
  bool grant_role(
      1: string role_name, 2: string principal_name, 3: PrincipalType principal_type, 4: string grantor,
      5: PrincipalType grantorType, 6: bool grant_option) throws (1: MetaException o1)
  bool revoke_role(1: string role_name, 2: string principal_name, 3: PrincipalType principal_type)
      throws (1: MetaException o1)
  list<Role> list_roles(1: string principal_name, 2: PrincipalType principal_type) throws (1: MetaException o1)
  GrantRevokeRoleResponse grant_revoke_role(1: GrantRevokeRoleRequest request) throws (1: MetaException o1)
  GetPrincipalsInRoleResponse get_principals_in_role(1: GetPrincipalsInRoleRequest request)
      throws (1: MetaException o1)
  GetRoleGrantsForPrincipalResponse get_role_grants_for_principal(1: GetRoleGrantsForPrincipalRequest request)
      throws (1: MetaException o1)
  PrincipalPrivilegeSet get_privilege_set(
      1: HiveObjectRef hiveObject, 2: string user_name, 3: list<string> group_names) throws (1: MetaException o1)
  list<HiveObjectPrivilege> list_privileges(
      1: string principal_name, 2: PrincipalType principal_type, 3: HiveObjectRef hiveObject)
      throws (1: MetaException o1)
  bool grant_privileges(1: PrivilegeBag privileges) throws (1: MetaException o1)
  bool revoke_privileges(1: PrivilegeBag privileges) throws (1: MetaException o1)
  GrantRevokePrivilegeResponse grant_revoke_privileges(1: GrantRevokePrivilegeRequest request)
      throws (1: MetaException o1)
  // Since 3.1.
  GrantRevokePrivilegeResponse refresh_privileges(
      1: HiveObjectRef objToRefresh, 2: string authorizer, 3: GrantRevokePrivilegeRequest grantRequest)
      throws (1: MetaException o1)

  // Users and delegation tokens.

  // Optional: the first call of a connection may be any other.
  list<string> set_ugi(1: string user_name, 2: list<string> group_names) throws (1: MetaException o1)
  string get_delegation_token(1: string token_owner, 2: string renewer_kerberos_principal_name)
      throws (1: MetaException o1)
  i64 renew_delegation_token(1: string token_str_form) throws (1: MetaException o1)
  void cancel_delegation_token(1: string token_str_form) throws (1: MetaException o1)
  bool add_token(1: string token_identifier, 2: string delegation_token)
  bool remove_token(1: string token_identifier)
  string get_token(1: string token_identifier)
  list<string> get_all_token_identifiers()
  i32 add_master_key(1: string key) throws (1: MetaException o1)
  void update_master_key(1: i32 seq_number, 2: string key) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool remove_master_key(1: i32 key_seq)
  list<string> get_master_keys()

  // Transactions and write ids.
  // `validTxnList` (open transactions) and `validWriteIdList` (one table) are different texts.

  GetOpenTxnsResponse get_open_txns()
  GetOpenTxnsInfoResponse get_open_txns_info()
  OpenTxnsResponse open_txns(1: OpenTxnRequest rqst)
  void abort_txn(1: AbortTxnRequest rqst) throws (1: NoSuchTxnException o1)
  void abort_txns(1: AbortTxnsRequest rqst) throws (1: NoSuchTxnException o1)
  void commit_txn(1: CommitTxnRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  // Since 4.0.0.
  i64 get_latest_txnid_in_conflict(1: i64 txnId) throws (1: MetaException o1)
  // Since 3.1.
  void repl_tbl_writeid_state(1: ReplTblWriteIdStateRequest rqst)
  // Since 3.1.
  GetValidWriteIdsResponse get_valid_write_ids(1: GetValidWriteIdsRequest rqst)
      throws (1: NoSuchTxnException o1, 2: MetaException o2)
  // Since 4.0.0.
  void add_write_ids_to_min_history(1: i64 txnId, 2: map<string, i64> writeIds) throws (1: MetaException o2)
  // Since 3.1.
  AllocateTableWriteIdsResponse allocate_table_write_ids(1: AllocateTableWriteIdsRequest rqst)
      throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: MetaException o3)
  // Since 4.0.0.
  MaxAllocatedTableWriteIdResponse get_max_allocated_table_write_id(1: MaxAllocatedTableWriteIdRequest rqst)
      throws (1: MetaException o1)
  // Since 4.0.0.
  void seed_write_id(1: SeedTableWriteIdsRequest rqst) throws (1: MetaException o1)
  // Since 4.0.0.
  void seed_txn_id(1: SeedTxnIdRequest rqst) throws (1: MetaException o1)
  HeartbeatTxnRangeResponse heartbeat_txn_range(1: HeartbeatTxnRangeRequest txns)
  void add_dynamic_partitions(1: AddDynamicPartitions rqst)
      throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  // Since 4.0.0.
  GetOpenTxnsResponse get_open_txns_req(1: GetOpenTxnsRequest getOpenTxnsRequest)
  // Since 4.2.
  ReplayedTxnsForPolicyResult get_replayed_txns_for_policy(1: string policyName) throws (1: MetaException o1)

  // Locks.

  LockResponse lock(1: LockRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  LockResponse check_lock(1: CheckLockRequest rqst)
      throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: NoSuchLockException o3)
  void unlock(1: UnlockRequest rqst) throws (1: NoSuchLockException o1, 2: TxnOpenException o2)
  ShowLocksResponse show_locks(1: ShowLocksRequest rqst)
  void heartbeat(1: HeartbeatRequest ids)
      throws (1: NoSuchLockException o1, 2: NoSuchTxnException o2, 3: TxnAbortedException o3)
  // Since 3.1.
  LockResponse get_lock_materialization_rebuild(1: string dbName, 2: string tableName, 3: i64 txnId)
  // Since 3.1.
  bool heartbeat_lock_materialization_rebuild(1: string dbName, 2: string tableName, 3: i64 txnId)
  // After 4.2.
  LockResponse get_lock_materialization_rebuild_req(1: LockMaterializationRebuildRequest req)
  // After 4.2.
  bool heartbeat_lock_materialization_rebuild_req(1: LockMaterializationRebuildRequest req)

  // Compaction.

  // Since 4.0.0.
  AbortCompactResponse abort_Compactions(1: AbortCompactionRequest rqst)
  void compact(1: CompactionRequest rqst)
  CompactionResponse compact2(1: CompactionRequest rqst)
  ShowCompactResponse show_compact(1: ShowCompactRequest rqst)
  // Since 4.0.0.
  bool submit_for_cleanup(1: CompactionRequest o1, 2: i64 o2, 3: i64 o3) throws (1: MetaException o1)
  // Since 4.0.0.
  OptionalCompactionInfoStruct find_next_compact(1: string workerId) throws (1: MetaException o1)
  // Since 4.0.0.
  OptionalCompactionInfoStruct find_next_compact2(1: FindNextCompactRequest rqst) throws (1: MetaException o1)
  // Since 4.0.0.
  void update_compactor_state(1: CompactionInfoStruct cr, 2: i64 txn_id)
  // Since 4.0.0.
  list<string> find_columns_with_stats(1: CompactionInfoStruct cr)
  // Since 4.0.0.
  void mark_cleaned(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  // Since 4.0.0.
  void mark_compacted(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  // Since 4.0.0.
  void mark_failed(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  // Since 4.0.0.
  void mark_refused(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  // Since 4.0.0.
  bool update_compaction_metrics_data(1: CompactionMetricsDataStruct data) throws (1: MetaException o1)
  // Since 4.0.0.
  void remove_compaction_metrics_data(1: CompactionMetricsDataRequest request) throws (1: MetaException o1)
  // Since 4.0.0.
  void set_hadoop_jobid(1: string jobId, 2: i64 cq_id)
  // Since 4.0.0.
  GetLatestCommittedCompactionInfoResponse get_latest_committed_compaction_info(
      1: GetLatestCommittedCompactionInfoRequest rqst)

  // Notification log.

  NotificationEventResponse get_next_notification(1: NotificationEventRequest rqst)
  CurrentNotificationEventId get_current_notificationEventId()
  // Since 3.1.
  NotificationEventsCountResponse get_notification_events_count(1: NotificationEventsCountRequest rqst)
  FireEventResponse fire_listener_event(1: FireEventRequest rqst)
  // Since 4.0.0.
  WriteNotificationLogResponse add_write_notification_log(1: WriteNotificationLogRequest rqst)
  // Since 4.0.0.
  WriteNotificationLogBatchResponse add_write_notification_log_in_batch(1: WriteNotificationLogBatchRequest rqst)
  // Since 4.0.0.
  list<WriteEventInfo> get_all_write_event_info(1: GetAllWriteEventInfoRequest request) throws (1: MetaException o1)

  // Workload management.

  // Since 3.1.
  WMCreateResourcePlanResponse create_resource_plan(1: WMCreateResourcePlanRequest request)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  // Since 3.1.
  WMGetResourcePlanResponse get_resource_plan(1: WMGetResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  WMGetActiveResourcePlanResponse get_active_resource_plan(1: WMGetActiveResourcePlanRequest request)
      throws (1: MetaException o2)
  // Since 3.1.
  WMGetAllResourcePlanResponse get_all_resource_plans(1: WMGetAllResourcePlanRequest request)
      throws (1: MetaException o1)
  // Since 3.1.
  WMAlterResourcePlanResponse alter_resource_plan(1: WMAlterResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  WMValidateResourcePlanResponse validate_resource_plan(1: WMValidateResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  WMDropResourcePlanResponse drop_resource_plan(1: WMDropResourcePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  WMCreateTriggerResponse create_wm_trigger(1: WMCreateTriggerRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: MetaException o4)
  // Since 3.1.
  WMAlterTriggerResponse alter_wm_trigger(1: WMAlterTriggerRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  // Since 3.1.
  WMDropTriggerResponse drop_wm_trigger(1: WMDropTriggerRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  WMGetTriggersForResourePlanResponse get_triggers_for_resourceplan(1: WMGetTriggersForResourePlanRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  WMCreatePoolResponse create_wm_pool(1: WMCreatePoolRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: MetaException o4)
  // Since 3.1.
  WMAlterPoolResponse alter_wm_pool(1: WMAlterPoolRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: MetaException o4)
  // Since 3.1.
  WMDropPoolResponse drop_wm_pool(1: WMDropPoolRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  WMCreateOrUpdateMappingResponse create_or_update_wm_mapping(1: WMCreateOrUpdateMappingRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: MetaException o4)
  // Since 3.1.
  WMDropMappingResponse drop_wm_mapping(1: WMDropMappingRequest request)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  WMCreateOrDropTriggerToPoolMappingResponse create_or_drop_wm_trigger_to_pool_mapping(
      1: WMCreateOrDropTriggerToPoolMappingRequest request)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3,
      4: MetaException o4)

  // Scheduled queries.

  // Since 4.0.0.
  ScheduledQueryPollResponse scheduled_query_poll(1: ScheduledQueryPollRequest request) throws (1: MetaException o1)
  // Since 4.0.0.
  void scheduled_query_maintenance(1: ScheduledQueryMaintenanceRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: AlreadyExistsException o3,
      4: InvalidInputException o4)
  // Since 4.0.0.
  void scheduled_query_progress(1: ScheduledQueryProgressInfo info)
      throws (1: MetaException o1, 2: InvalidOperationException o2)
  // Since 4.0.0.
  ScheduledQuery get_scheduled_query(1: ScheduledQueryKey scheduleKey)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)

  // Runtime statistics.

  // Since 3.1.
  void add_runtime_stats(1: RuntimeStat stat) throws (1: MetaException o1)
  // Since 3.1.
  list<RuntimeStat> get_runtime_stats(1: GetRuntimeStatsRequest rqst) throws (1: MetaException o1)

  // Schema registry.

  // Since 3.1. 3.1 writes NoSuchObjectException under id -1.
  void create_ischema(1: ISchema schema)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: MetaException o3)
  // Since 3.1.
  void alter_ischema(1: AlterISchemaRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  ISchema get_ischema(1: ISchemaName name) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void drop_ischema(1: ISchemaName name)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  void add_schema_version(1: SchemaVersion schemaVersion)
      throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: MetaException o3)
  // Since 3.1.
  SchemaVersion get_schema_version(1: SchemaVersionDescriptor schemaVersion)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  SchemaVersion get_schema_latest_version(1: ISchemaName schemaName)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  list<SchemaVersion> get_schema_all_versions(1: ISchemaName schemaName)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void drop_schema_version(1: SchemaVersionDescriptor schemaVersion)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  FindSchemasByColsResp get_schemas_by_cols(1: FindSchemasByColsRqst rqst) throws (1: MetaException o1)
  // Since 3.1.
  void map_schema_version_to_serde(1: MapSchemaVersionToSerdeRequest rqst)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 3.1.
  void set_schema_version_state(1: SetSchemaVersionStateRequest rqst)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 3.1.
  void add_serde(1: SerDeInfo serde) throws (1: AlreadyExistsException o1, 2: MetaException o2)
  // Since 3.1.
  SerDeInfo get_serde(1: GetSerdeRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)

  // Configuration, types, indexes, file metadata, data connectors, procedures, packages, replication, properties.
  // Indexes ended with Hive 2.3, the first data connector calls with 4.0.0.

  string getMetaConf(1: string key) throws (1: MetaException o1)
  void setMetaConf(1: string key, 2: string value) throws (1: MetaException o1)
  // Since 4.0.1.
  void create_dataconnector_req(1: CreateDataConnectorRequest connectorReq)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  // Since 4.0.0.
  DataConnector get_dataconnector_req(1: GetDataConnectorRequest request)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.1.
  void drop_dataconnector_req(1: DropDataConnectorRequest dropDcReq)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // Since 4.0.0.
  list<string> get_dataconnectors() throws (1: MetaException o1)
  // Since 4.0.1.
  void alter_dataconnector_req(1: AlterDataConnectorRequest alterReq)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Type get_type(1: string name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  bool create_type(1: Type type)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  bool drop_type(1: string type) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  map<string, Type> get_type_all(1: string name) throws (1: MetaException o2)
  // Since 4.0.0.
  PropertyGetResponse get_properties(1: PropertyGetRequest req)
      throws (1: MetaException e1, 2: NoSuchObjectException e2)
  // Since 4.0.0.
  bool set_properties(1: PropertySetRequest req) throws (1: MetaException e1, 2: NoSuchObjectException e2)
  string get_config_value(1: string name, 2: string defaultValue) throws (1: ConfigValSecurityException o1)
  void flushCache()
  // Since 3.1.
  CmRecycleResponse cm_recycle(1: CmRecycleRequest request) throws (1: MetaException o1)
  GetFileMetadataByExprResult get_file_metadata_by_expr(1: GetFileMetadataByExprRequest req)
  GetFileMetadataResult get_file_metadata(1: GetFileMetadataRequest req)
  PutFileMetadataResult put_file_metadata(1: PutFileMetadataRequest req)
  ClearFileMetadataResult clear_file_metadata(1: ClearFileMetadataRequest req)
  CacheFileMetadataResult cache_file_metadata(1: CacheFileMetadataRequest req)
  // Since 3.1.
  string get_metastore_db_uuid() throws (1: MetaException o1)
  // Since 4.0.0.
  void add_replication_metrics(1: ReplicationMetricList replicationMetricList) throws (1: MetaException o1)
  // Since 4.0.0.
  ReplicationMetricList get_replication_metrics(1: GetReplicationMetricsRequest rqst) throws (1: MetaException o1)
  // Since 4.0.0.
  void create_stored_procedure(1: StoredProcedure proc) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // Since 4.0.0.
  StoredProcedure get_stored_procedure(1: StoredProcedureRequest request)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  void drop_stored_procedure(1: StoredProcedureRequest request) throws (1: MetaException o1)
  // Since 4.0.0.
  list<string> get_all_stored_procedures(1: ListStoredProcedureRequest request) throws (1: MetaException o1)
  // Since 4.0.0.
  Package find_package(1: GetPackageRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // Since 4.0.0.
  void add_package(1: AddPackageRequest request) throws (1: MetaException o1)
  // Since 4.0.0.
  list<string> get_all_packages(1: ListPackageRequest request) throws (1: MetaException o1)
  // Since 4.0.0.
  void drop_package(1: DropPackageRequest request) throws (1: MetaException o1)
  // 4.0.0 only.
  void create_dataconnector(1: DataConnector connector)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  // 4.0.0 only.
  void drop_dataconnector(1: string name, 2: bool ifNotExists, 3: bool checkReferences)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  // 4.0.0 only.
  void alter_dataconnector(1: string name, 2: DataConnector connector)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // 2.3 only.
  Index add_index(1: Index new_index, 2: Table index_table)
      throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  // 2.3 only.
  void alter_index(1: string dbname, 2: string base_tbl_name, 3: string idx_name, 4: Index new_idx)
      throws (1: InvalidOperationException o1, 2: MetaException o2)
  // 2.3 only.
  bool drop_index_by_name(1: string db_name, 2: string tbl_name, 3: string index_name, 4: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // 2.3 only.
  Index get_index_by_name(1: string db_name, 2: string tbl_name, 3: string index_name)
      throws (1: MetaException o1, 2: NoSuchObjectException o2)
  // 2.3 only.
  list<Index> get_indexes(1: string db_name, 2: string tbl_name, 3: i16 max_indexes)
      throws (1: NoSuchObjectException o1, 2: MetaException o2)
  // 2.3 only.
  list<string> get_index_names(1: string db_name, 2: string tbl_name, 3: i16 max_indexes) throws (1: MetaException o2)
}

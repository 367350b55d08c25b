import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HMSHandler;
import org.apache.hadoop.hive.metastore.TransactionalMetaStoreEventListener;
import org.apache.hadoop.hive.metastore.api.ColumnStatistics;
import org.apache.hadoop.hive.metastore.api.ColumnStatisticsDesc;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.Function;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.SQLCheckConstraint;
import org.apache.hadoop.hive.metastore.api.SQLDefaultConstraint;
import org.apache.hadoop.hive.metastore.api.SQLForeignKey;
import org.apache.hadoop.hive.metastore.api.SQLNotNullConstraint;
import org.apache.hadoop.hive.metastore.api.SQLPrimaryKey;
import org.apache.hadoop.hive.metastore.api.SQLUniqueConstraint;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.TxnType;
import org.apache.hadoop.hive.metastore.events.AbortTxnEvent;
import org.apache.hadoop.hive.metastore.events.AddCheckConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AddDefaultConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AddForeignKeyEvent;
import org.apache.hadoop.hive.metastore.events.AddNotNullConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AddPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AddPrimaryKeyEvent;
import org.apache.hadoop.hive.metastore.events.AddUniqueConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AllocWriteIdEvent;
import org.apache.hadoop.hive.metastore.events.AlterDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.AlterPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AlterTableEvent;
import org.apache.hadoop.hive.metastore.events.CommitCompactionEvent;
import org.apache.hadoop.hive.metastore.events.CommitTxnEvent;
import org.apache.hadoop.hive.metastore.events.CreateDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.CreateFunctionEvent;
import org.apache.hadoop.hive.metastore.events.CreateTableEvent;
import org.apache.hadoop.hive.metastore.events.DeletePartitionColumnStatEvent;
import org.apache.hadoop.hive.metastore.events.DeleteTableColumnStatEvent;
import org.apache.hadoop.hive.metastore.events.DropConstraintEvent;
import org.apache.hadoop.hive.metastore.events.DropDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.DropFunctionEvent;
import org.apache.hadoop.hive.metastore.events.DropPartitionEvent;
import org.apache.hadoop.hive.metastore.events.DropTableEvent;
import org.apache.hadoop.hive.metastore.events.InsertEvent;
import org.apache.hadoop.hive.metastore.events.OpenTxnEvent;
import org.apache.hadoop.hive.metastore.events.ReloadEvent;
import org.apache.hadoop.hive.metastore.events.UpdatePartitionColumnStatEvent;
import org.apache.hadoop.hive.metastore.events.UpdatePartitionColumnStatEventBatch;
import org.apache.hadoop.hive.metastore.events.UpdateTableColumnStatEvent;
import org.apache.hadoop.hive.metastore.messaging.EventMessage;
import org.apache.hadoop.hive.metastore.messaging.MessageBuilder;
import org.apache.hadoop.hive.metastore.messaging.MessageEncoder;
import org.apache.hadoop.hive.metastore.messaging.MessageFactory;
import org.apache.hadoop.hive.metastore.messaging.PartitionFiles;
import org.apache.hadoop.hive.metastore.tools.SQLGenerator;

/**
 * Logs every kind of event that DbNotificationListener logs, whose jar Maven Central does not serve, with the columns
 * that it fills and the metastore's own messages. On MariaDB; without files and without a cleaner.
 */
public class EveryEventListener extends TransactionalMetaStoreEventListener {
  private static final MessageBuilder MESSAGES = MessageBuilder.getInstance();
  private static final String ROWS = "'org.apache.hadoop.hive.metastore.model.MNotificationLog'";
  private final Configuration configuration;
  private final MessageEncoder encoder;

  public EveryEventListener(Configuration configuration) {
    super(configuration);
    this.configuration = configuration;
    this.encoder = MessageFactory.getDefaultInstance(configuration);
  }

  private void log(String type, String catalog, String database, String table, EventMessage message)
      throws MetaException {
    NotificationEvent event = new NotificationEvent(0, now(), type, encoder.getSerializer().serialize(message));
    event.setMessageFormat(encoder.getMessageFormat());
    event.setCatName(catalog == null ? "hive" : catalog);
    event.setDbName(database);
    if (table != null) {
      event.setTableName(table);
    }
    HMSHandler.getMSForConf(configuration).addNotificationEvent(event);
  }

  private void log(String type, Table table, EventMessage message) throws MetaException {
    log(type, table.getCatName(), table.getDbName(), table.getTableName(), message);
  }

  /** On the connection of a change that was made by SQL. */
  private void log(
      Connection connection, String type, String catalog, String database, String table, EventMessage message)
      throws MetaException {
    try (Statement statement = connection.createStatement()) {
      long event = taken(statement, "NEXT_EVENT_ID", "NOTIFICATION_SEQUENCE");
      long row = taken(statement, "NEXT_VAL", "SEQUENCE_TABLE WHERE SEQUENCE_NAME = " + ROWS);
      try (PreparedStatement insert = connection.prepareStatement(
          "INSERT INTO NOTIFICATION_LOG (NL_ID, EVENT_ID, EVENT_TIME, EVENT_TYPE, MESSAGE, MESSAGE_FORMAT, CAT_NAME,"
              + " DB_NAME, TBL_NAME) VALUES (?,?,?,?,?,?,?,?,?)")) {
        insert.setLong(1, row);
        insert.setLong(2, event);
        insert.setInt(3, now());
        insert.setString(4, type);
        insert.setString(5, encoder.getSerializer().serialize(message));
        insert.setString(6, encoder.getMessageFormat());
        insert.setString(7, catalog);
        insert.setString(8, database);
        insert.setString(9, table);
        insert.executeUpdate();
      }
    } catch (SQLException error) {
      throw new MetaException(error.toString());
    }
  }

  private static long taken(Statement statement, String column, String where) throws SQLException {
    long number;
    try (ResultSet found = statement.executeQuery("SELECT " + column + " FROM " + where + " FOR UPDATE")) {
      found.next();
      number = found.getLong(1);
    }
    statement.executeUpdate("UPDATE " + where.replaceFirst("( WHERE|$)", " SET " + column + " = " + column + " + 1$1"));
    return number;
  }

  private static int now() {
    return (int) (System.currentTimeMillis() / 1000);
  }

  @Override
  public void onCreateDatabase(CreateDatabaseEvent event) throws MetaException {
    Database of = event.getDatabase();
    log("CREATE_DATABASE", of.getCatalogName(), of.getName(), null, MESSAGES.buildCreateDatabaseMessage(of));
  }

  @Override
  public void onAlterDatabase(AlterDatabaseEvent event) throws MetaException {
    Database of = event.getOldDatabase();
    log("ALTER_DATABASE", of.getCatalogName(), of.getName(), null,
        MESSAGES.buildAlterDatabaseMessage(of, event.getNewDatabase()));
  }

  @Override
  public void onDropDatabase(DropDatabaseEvent event) throws MetaException {
    Database of = event.getDatabase();
    log("DROP_DATABASE", of.getCatalogName(), of.getName(), null, MESSAGES.buildDropDatabaseMessage(of));
  }

  @Override
  public void onCreateTable(CreateTableEvent event) throws MetaException {
    log("CREATE_TABLE", event.getTable(),
        MESSAGES.buildCreateTableMessage(event.getTable(), Collections.<String>emptyIterator()));
  }

  @Override
  public void onAlterTable(AlterTableEvent event) throws MetaException {
    log("ALTER_TABLE", event.getNewTable(), MESSAGES.buildAlterTableMessage(
        event.getOldTable(), event.getNewTable(), event.getIsTruncateOp(), event.getWriteId()));
  }

  @Override
  public void onDropTable(DropTableEvent event) throws MetaException {
    log("DROP_TABLE", event.getTable(), MESSAGES.buildDropTableMessage(event.getTable()));
  }

  @Override
  public void onAddPartition(AddPartitionEvent event) throws MetaException {
    log("ADD_PARTITION", event.getTable(), MESSAGES.buildAddPartitionMessage(
        event.getTable(), event.getPartitionIterator(), Collections.<PartitionFiles>emptyIterator()));
  }

  @Override
  public void onAlterPartition(AlterPartitionEvent event) throws MetaException {
    Partition before = event.getOldPartition();
    log("ALTER_PARTITION", before.getCatName(), before.getDbName(), before.getTableName(),
        MESSAGES.buildAlterPartitionMessage(event.getTable(), before, event.getNewPartition(), event.getIsTruncateOp(),
            event.getWriteId()));
  }

  @Override
  public void onDropPartition(DropPartitionEvent event) throws MetaException {
    log("DROP_PARTITION", event.getTable(),
        MESSAGES.buildDropPartitionMessage(event.getTable(), event.getPartitionIterator()));
  }

  @Override
  public void onCreateFunction(CreateFunctionEvent event) throws MetaException {
    Function of = event.getFunction();
    log("CREATE_FUNCTION", of.getCatName(), of.getDbName(), null, MESSAGES.buildCreateFunctionMessage(of));
  }

  @Override
  public void onDropFunction(DropFunctionEvent event) throws MetaException {
    Function of = event.getFunction();
    log("DROP_FUNCTION", of.getCatName(), of.getDbName(), null, MESSAGES.buildDropFunctionMessage(of));
  }

  @Override
  public void onInsert(InsertEvent event) throws MetaException {
    log("INSERT", event.getTableObj(), MESSAGES.buildInsertMessage(
        event.getTableObj(), event.getPartitionObj(), event.isReplace(), event.getFiles().iterator()));
  }

  @Override
  public void onReload(ReloadEvent event) throws MetaException {
    log("RELOAD", event.getTableObj(), MESSAGES.buildReloadMessage(
        event.getTableObj(), event.getPartitionObj(), event.isRefreshEvent()));
  }

  // Of several constraints the row names the first one's table, of foreign keys the table that they refer to.

  @Override
  public void onAddPrimaryKey(AddPrimaryKeyEvent event) throws MetaException {
    for (SQLPrimaryKey first : event.getPrimaryKeyCols().stream().limit(1).toList()) {
      log("ADD_PRIMARYKEY", first.getCatName(), first.getTable_db(), first.getTable_name(),
          MESSAGES.buildAddPrimaryKeyMessage(event.getPrimaryKeyCols()));
    }
  }

  @Override
  public void onAddForeignKey(AddForeignKeyEvent event) throws MetaException {
    for (SQLForeignKey first : event.getForeignKeyCols().stream().limit(1).toList()) {
      log("ADD_FOREIGNKEY", first.getCatName(), first.getPktable_db(), first.getPktable_name(),
          MESSAGES.buildAddForeignKeyMessage(event.getForeignKeyCols()));
    }
  }

  @Override
  public void onAddUniqueConstraint(AddUniqueConstraintEvent event) throws MetaException {
    for (SQLUniqueConstraint first : event.getUniqueConstraintCols().stream().limit(1).toList()) {
      log("ADD_UNIQUECONSTRAINT", first.getCatName(), first.getTable_db(), first.getTable_name(),
          MESSAGES.buildAddUniqueConstraintMessage(event.getUniqueConstraintCols()));
    }
  }

  @Override
  public void onAddNotNullConstraint(AddNotNullConstraintEvent event) throws MetaException {
    for (SQLNotNullConstraint first : event.getNotNullConstraintCols().stream().limit(1).toList()) {
      log("ADD_NOTNULLCONSTRAINT", first.getCatName(), first.getTable_db(), first.getTable_name(),
          MESSAGES.buildAddNotNullConstraintMessage(event.getNotNullConstraintCols()));
    }
  }

  @Override
  public void onAddDefaultConstraint(AddDefaultConstraintEvent event) throws MetaException {
    for (SQLDefaultConstraint first : event.getDefaultConstraintCols().stream().limit(1).toList()) {
      log("ADD_DEFAULTCONSTRAINT", first.getCatName(), first.getTable_db(), first.getTable_name(),
          MESSAGES.buildAddDefaultConstraintMessage(event.getDefaultConstraintCols()));
    }
  }

  @Override
  public void onAddCheckConstraint(AddCheckConstraintEvent event) throws MetaException {
    for (SQLCheckConstraint first : event.getCheckConstraintCols().stream().limit(1).toList()) {
      log("ADD_CHECKCONSTRAINT", first.getCatName(), first.getTable_db(), first.getTable_name(),
          MESSAGES.buildAddCheckConstraintMessage(event.getCheckConstraintCols()));
    }
  }

  @Override
  public void onDropConstraint(DropConstraintEvent event) throws MetaException {
    log("DROP_CONSTRAINT", event.getCatName(), event.getDbName(), event.getTableName(),
        MESSAGES.buildDropConstraintMessage(event.getDbName(), event.getTableName(), event.getConstraintName()));
  }

  @Override
  public void onUpdateTableColumnStat(UpdateTableColumnStatEvent event) throws MetaException {
    ColumnStatistics statistics = event.getColStats();
    ColumnStatisticsDesc of = statistics.getStatsDesc();
    log("UPDATE_TBL_COL_STAT_EVENT", of.getCatName(), of.getDbName(), of.getTableName(),
        MESSAGES.buildUpdateTableColumnStatMessage(
            statistics, event.getTableObj(), event.getTableParameters(), event.getWriteId()));
  }

  @Override
  public void onDeleteTableColumnStat(DeleteTableColumnStatEvent event) throws MetaException {
    log("DELETE_TBL_COL_STAT_EVENT", event.getCatName(), event.getDBName(), event.getTableName(),
        MESSAGES.buildDeleteTableColumnStatMessage(event.getDBName(), event.getColName()));
  }

  @Override
  public void onUpdatePartitionColumnStat(UpdatePartitionColumnStatEvent event) throws MetaException {
    ColumnStatisticsDesc of = event.getPartColStats().getStatsDesc();
    log("UPDATE_PART_COL_STAT_EVENT", of.getCatName(), of.getDbName(), of.getTableName(), message(event));
  }

  @Override
  public void onUpdatePartitionColumnStatInBatch(
      UpdatePartitionColumnStatEventBatch batch, Connection connection, SQLGenerator generator) throws MetaException {
    for (int number = 0; number < batch.getNumEntries(); number++) {
      UpdatePartitionColumnStatEvent event = batch.getPartColStatEvent(number);
      ColumnStatisticsDesc of = event.getPartColStats().getStatsDesc();
      log(connection, "UPDATE_PART_COL_STAT_EVENT", of.isSetCatName() ? of.getCatName() : "hive", of.getDbName(),
          of.getTableName(), message(event));
    }
  }

  private static EventMessage message(UpdatePartitionColumnStatEvent event) {
    return MESSAGES.buildUpdatePartitionColumnStatMessage(event.getPartColStats(), event.getPartVals(),
        event.getPartParameters(), event.getTableObj(), event.getWriteId());
  }

  @Override
  public void onDeletePartitionColumnStat(DeletePartitionColumnStatEvent event) throws MetaException {
    log("DELETE_PART_COL_STAT_EVENT", event.getCatName(), event.getDBName(), event.getTableName(),
        MESSAGES.buildDeletePartitionColumnStatMessage(
            event.getDBName(), event.getColName(), event.getPartName(), event.getPartVals()));
  }

  @Override
  public void onOpenTxn(OpenTxnEvent event, Connection connection, SQLGenerator generator) throws MetaException {
    if (event.getTxnType() != TxnType.READ_ONLY) {
      long first = event.getTxnIds().get(0);
      long last = event.getTxnIds().get(event.getTxnIds().size() - 1);
      log(connection, "OPEN_TXN", null, null, null, MESSAGES.buildOpenTxnMessage(first, last));
    }
  }

  @Override
  public void onCommitTxn(CommitTxnEvent event, Connection connection, SQLGenerator generator) throws MetaException {
    if (event.getTxnType() != TxnType.READ_ONLY) {
      log(connection, "COMMIT_TXN", null, null, null, MESSAGES.buildCommitTxnMessage(event.getTxnId()));
    }
  }

  @Override
  public void onAbortTxn(AbortTxnEvent event, Connection connection, SQLGenerator generator) throws MetaException {
    if (event.getTxnType() != TxnType.READ_ONLY) {
      log(connection, "ABORT_TXN", null, null, null,
          MESSAGES.buildAbortTxnMessage(event.getTxnId(), event.getDbsUpdated()));
    }
  }

  @Override
  public void onAllocWriteId(AllocWriteIdEvent event, Connection connection, SQLGenerator generator)
      throws MetaException {
    log(connection, "ALLOC_WRITE_ID_EVENT", null, event.getDbName(), event.getTableName(),
        MESSAGES.buildAllocWriteIdMessage(event.getTxnToWriteIdList(), event.getDbName(), event.getTableName()));
  }

  @Override
  public void onCommitCompaction(CommitCompactionEvent event, Connection connection, SQLGenerator generator)
      throws MetaException {
    log(connection, "COMMIT_COMPACTION_EVENT", null, event.getDbname(), event.getTableName(),
        MESSAGES.buildCommitCompactionMessage(event));
  }

  @Override
  public boolean doesAddEventsToNotificationLogTable() {
    return true;
  }
}

import java.util.Collections;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HMSHandler;
import org.apache.hadoop.hive.metastore.TransactionalMetaStoreEventListener;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.api.SQLCheckConstraint;
import org.apache.hadoop.hive.metastore.api.SQLDefaultConstraint;
import org.apache.hadoop.hive.metastore.api.SQLNotNullConstraint;
import org.apache.hadoop.hive.metastore.api.SQLUniqueConstraint;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.events.AddCheckConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AddDefaultConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AddNotNullConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AddPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AddUniqueConstraintEvent;
import org.apache.hadoop.hive.metastore.events.AlterDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.AlterPartitionEvent;
import org.apache.hadoop.hive.metastore.events.AlterTableEvent;
import org.apache.hadoop.hive.metastore.events.CreateDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.CreateTableEvent;
import org.apache.hadoop.hive.metastore.events.DropDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.DropPartitionEvent;
import org.apache.hadoop.hive.metastore.events.DropTableEvent;
import org.apache.hadoop.hive.metastore.events.InsertEvent;
import org.apache.hadoop.hive.metastore.events.ListenerEvent;
import org.apache.hadoop.hive.metastore.events.ReloadEvent;
import org.apache.hadoop.hive.metastore.messaging.EventMessage;
import org.apache.hadoop.hive.metastore.messaging.MessageBuilder;
import org.apache.hadoop.hive.metastore.messaging.MessageEncoder;
import org.apache.hadoop.hive.metastore.messaging.MessageFactory;
import org.apache.hadoop.hive.metastore.messaging.PartitionFiles;

/**
 * Logs what a Java metastore changes, in the transaction of the change, with the metastore's own messages and its own
 * RawStore.addNotificationEvent. In the place of DbNotificationListener, whose jar Maven Central may not serve;
 * without its cleaner, and without the events that tests and benchmarks have no use for (transactions, functions).
 */
public class LogListener extends TransactionalMetaStoreEventListener {
  private static final MessageBuilder MESSAGES = MessageBuilder.getInstance();
  private final Configuration configuration;
  private final MessageEncoder encoder;

  public LogListener(Configuration configuration) {
    super(configuration);
    this.configuration = configuration;
    this.encoder = MessageFactory.getDefaultInstance(configuration);
  }

  private void log(ListenerEvent cause, String type, String database, String table, EventMessage message)
      throws MetaException {
    if (!cause.getStatus()) {
      return;
    }
    NotificationEvent event = new NotificationEvent(
        0, (int) (System.currentTimeMillis() / 1000), type, encoder.getSerializer().serialize(message));
    event.setMessageFormat(encoder.getMessageFormat());
    event.setCatName("hive");
    event.setDbName(database);
    if (table != null) {
      event.setTableName(table);
    }
    HMSHandler.getMSForConf(configuration).addNotificationEvent(event);
  }

  private void log(ListenerEvent cause, String type, Table table, EventMessage message) throws MetaException {
    log(cause, type, table.getDbName(), table.getTableName(), message);
  }

  private static Iterator<String> noFiles() {
    return Collections.<String>emptyList().iterator();
  }

  @Override
  public void onCreateDatabase(CreateDatabaseEvent event) throws MetaException {
    Database database = event.getDatabase();
    log(event, "CREATE_DATABASE", database.getName(), null, MESSAGES.buildCreateDatabaseMessage(database));
  }

  @Override
  public void onAlterDatabase(AlterDatabaseEvent event) throws MetaException {
    Database old = event.getOldDatabase();
    log(event, "ALTER_DATABASE", old.getName(), null, MESSAGES.buildAlterDatabaseMessage(old, event.getNewDatabase()));
  }

  @Override
  public void onDropDatabase(DropDatabaseEvent event) throws MetaException {
    Database database = event.getDatabase();
    log(event, "DROP_DATABASE", database.getName(), null, MESSAGES.buildDropDatabaseMessage(database));
  }

  @Override
  public void onCreateTable(CreateTableEvent event) throws MetaException {
    log(event, "CREATE_TABLE", event.getTable(), MESSAGES.buildCreateTableMessage(event.getTable(), noFiles()));
  }

  @Override
  public void onDropTable(DropTableEvent event) throws MetaException {
    log(event, "DROP_TABLE", event.getTable(), MESSAGES.buildDropTableMessage(event.getTable()));
  }

  @Override
  public void onAlterTable(AlterTableEvent event) throws MetaException {
    log(event, "ALTER_TABLE", event.getNewTable(), MESSAGES.buildAlterTableMessage(
        event.getOldTable(), event.getNewTable(), event.getIsTruncateOp(), event.getWriteId()));
  }

  // Of several constraints the row names the first one's table, as in DbNotificationListener.

  @Override
  public void onAddUniqueConstraint(AddUniqueConstraintEvent event) throws MetaException {
    SQLUniqueConstraint first = event.getUniqueConstraintCols().get(0);
    log(event, "ADD_UNIQUECONSTRAINT", first.getTable_db(), first.getTable_name(),
        MESSAGES.buildAddUniqueConstraintMessage(event.getUniqueConstraintCols()));
  }

  @Override
  public void onAddNotNullConstraint(AddNotNullConstraintEvent event) throws MetaException {
    SQLNotNullConstraint first = event.getNotNullConstraintCols().get(0);
    log(event, "ADD_NOTNULLCONSTRAINT", first.getTable_db(), first.getTable_name(),
        MESSAGES.buildAddNotNullConstraintMessage(event.getNotNullConstraintCols()));
  }

  @Override
  public void onAddDefaultConstraint(AddDefaultConstraintEvent event) throws MetaException {
    SQLDefaultConstraint first = event.getDefaultConstraintCols().get(0);
    log(event, "ADD_DEFAULTCONSTRAINT", first.getTable_db(), first.getTable_name(),
        MESSAGES.buildAddDefaultConstraintMessage(event.getDefaultConstraintCols()));
  }

  @Override
  public void onAddCheckConstraint(AddCheckConstraintEvent event) throws MetaException {
    SQLCheckConstraint first = event.getCheckConstraintCols().get(0);
    log(event, "ADD_CHECKCONSTRAINT", first.getTable_db(), first.getTable_name(),
        MESSAGES.buildAddCheckConstraintMessage(event.getCheckConstraintCols()));
  }

  @Override
  public void onAddPartition(AddPartitionEvent event) throws MetaException {
    log(event, "ADD_PARTITION", event.getTable(), MESSAGES.buildAddPartitionMessage(
        event.getTable(), event.getPartitionIterator(), Collections.<PartitionFiles>emptyList().iterator()));
  }

  @Override
  public void onDropPartition(DropPartitionEvent event) throws MetaException {
    log(event, "DROP_PARTITION", event.getTable(),
        MESSAGES.buildDropPartitionMessage(event.getTable(), event.getPartitionIterator()));
  }

  @Override
  public void onAlterPartition(AlterPartitionEvent event) throws MetaException {
    log(event, "ALTER_PARTITION", event.getTable(), MESSAGES.buildAlterPartitionMessage(
        event.getTable(), event.getOldPartition(), event.getNewPartition(), event.getIsTruncateOp(),
        event.getWriteId()));
  }

  @Override
  public void onInsert(InsertEvent event) throws MetaException {
    log(event, "INSERT", event.getTableObj(), MESSAGES.buildInsertMessage(
        event.getTableObj(), event.getPartitionObj(), event.isReplace(), event.getFiles().iterator()));
  }

  @Override
  public void onReload(ReloadEvent event) throws MetaException {
    log(event, "RELOAD", event.getTableObj(), MESSAGES.buildReloadMessage(
        event.getTableObj(), event.getPartitionObj(), event.isRefreshEvent()));
  }

  @Override
  public boolean doesAddEventsToNotificationLogTable() {
    return true;
  }
}

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.events.CreateTableEvent;

/**
 * Logs after the commit when it is one of metastore.event.listeners, as DbNotificationListener does there. Its process
 * ends between both for a table named "crash".
 */
public class LateNotificationListener extends LogListener {
  public LateNotificationListener(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void onCreateTable(CreateTableEvent event) throws MetaException {
    if (event.getTable().getTableName().equals("crash")) {
      Runtime.getRuntime().halt(1);
    }
    super.onCreateTable(event);
  }
}

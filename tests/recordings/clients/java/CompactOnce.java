import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.CompactionRequest;
import org.apache.hadoop.hive.metastore.api.CompactionType;
import org.apache.hadoop.hive.ql.txn.compactor.Worker;

/**
 * Asks for compactions, then runs Hive's own worker, as HiveServer2 runs it, once more than there are any. The statement
 * ALTER TABLE … COMPACT of 4.0.1 needs the metastore's own classes and database beside it, so it is not used.
 */
public class CompactOnce {
  public static void main(String[] arguments) throws Exception {
    HiveConf configuration = new HiveConf();
    HiveMetaStoreClient client = new HiveMetaStoreClient(configuration);
    for (String argument : arguments) { // TABLE:PARTITION:TYPE, each twice: the second is told that it is there already
      String[] parts = argument.split(":");
      for (int time = 0; time < 2; time++) {
        CompactionRequest request = new CompactionRequest("compacted", parts[0], CompactionType.valueOf(parts[2]));
        if (!parts[1].isEmpty()) {
          request.setPartitionname(parts[1]);
        }
        client.compact2(request);
      }
    }
    for (int round = 0; round <= arguments.length; round++) {
      Worker worker = new Worker();
      worker.setConf(new HiveConf());
      worker.init(new AtomicBoolean(true)); // It ends after one.
      worker.run();
    }
    client.close();
    System.exit(0);
  }
}

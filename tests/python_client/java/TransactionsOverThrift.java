import java.util.Arrays;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.common.ValidReaderWriteIdList;
import org.apache.hadoop.hive.common.ValidTxnList;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.LockComponentBuilder;
import org.apache.hadoop.hive.metastore.LockRequestBuilder;
import org.apache.hadoop.hive.metastore.api.DataOperationType;
import org.apache.hadoop.hive.metastore.api.EnvironmentContext;
import org.apache.hadoop.hive.metastore.api.LockResponse;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.TxnAbortedException;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnCommonUtils;

/** Whole transactions with Hive's own client: arguments are the metastore's URI, a database and a table. */
public class TransactionsOverThrift {
  private static HiveMetaStoreClient client;
  private static String database;
  private static String table;

  public static void main(String[] arguments) throws Exception {
    Configuration configuration = MetastoreConf.newMetastoreConf();
    MetastoreConf.setVar(configuration, MetastoreConf.ConfVars.THRIFT_URIS, arguments[0]);
    database = arguments[1];
    table = arguments[2];
    client = new HiveMetaStoreClient(configuration);
    try {
      commit();
      abort();
      conflict();
    } finally {
      client.close();
    }
  }

  private static String lists(long txn) throws Exception {
    ValidTxnList txns = client.getValidTxns(txn);
    return TxnCommonUtils.createValidReaderWriteIdList(
        client.getValidWriteIds(Collections.singletonList(database + "." + table), txns.writeToString()).get(0))
        .writeToString();
  }

  private static LockResponse lock(long txn, boolean isUpdate) throws Exception {
    LockComponentBuilder component = new LockComponentBuilder()
        .setDbName(database).setTableName(table).setIsTransactional(true)
        .setOperationType(isUpdate ? DataOperationType.UPDATE : DataOperationType.INSERT);
    if (isUpdate) {
      component.setSharedWrite();
    } else {
      component.setSharedRead();
    }
    return client.lock(new LockRequestBuilder("query").setTransactionId(txn).setUser("tester")
        .addLockComponent(component.build()).build());
  }

  private static Table read(String writeIds) throws Exception {
    return client.getTable("hive", database, table, writeIds, false, null);
  }

  private static void alter(String note, String writeIds, long writeId) throws Exception {
    Table changed = read(writeIds);
    changed.putToParameters("note", note);
    changed.setWriteId(writeId);
    client.alter_table("hive", database, table, changed,
        new EnvironmentContext(Collections.singletonMap("DO_NOT_UPDATE_STATS", "true")), writeIds);
  }

  private static void commit() throws Exception {
    long txn = client.openTxn("tester");
    String before = lists(txn);
    long writeId = client.allocateTableWriteId(txn, database, table);
    System.out.println("lock " + lock(txn, false).getState());
    client.heartbeat(txn, 0);
    String own = new ValidReaderWriteIdList(database + "." + table, new long[0], new java.util.BitSet(), writeId)
        .writeToString();
    alter("committed", own, writeId);
    System.out.println("own " + read(own).getParameters().get("note"));
    client.commitTxn(txn);
    long reader = client.openTxn("tester");
    System.out.println("before " + before);
    System.out.println("after " + lists(reader));
    System.out.println("read " + read(lists(reader)).getParameters().get("note"));
    client.commitTxn(reader);
  }

  private static void abort() throws Exception {
    long txn = client.openTxn("tester");
    client.allocateTableWriteId(txn, database, table);
    client.rollbackTxn(txn);
    long reader = client.openTxn("tester");
    System.out.println("aborted " + lists(reader));
    client.commitTxn(reader);
  }

  private static void conflict() throws Exception {
    long first = client.openTxn("tester");
    long second = client.openTxn("tester");
    for (long txn : Arrays.asList(first, second)) {
      client.allocateTableWriteId(txn, database, table);
    }
    System.out.println("first " + lock(first, true).getState());
    // Shared writers do not wait for each other: what they wrote decides, at the commit.
    LockResponse shared = lock(second, true);
    System.out.println("second " + shared.getState());
    client.commitTxn(first);
    System.out.println("second " + client.checkLock(shared.getLockid()).getState());
    try {
      client.commitTxn(second);
      System.out.println("conflict missed");
    } catch (TxnAbortedException error) {
      System.out.println("conflict " + error.getMessage());
    }
  }
}

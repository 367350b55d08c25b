package org.apache.hadoop.hive.metastore.txn;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import org.apache.hadoop.conf.Configuration;

/**
 * In place of the class with which Hive 3's tests drop and make the tables of transactions, as those of Hive 3 are: what
 * is in the tables goes, and they stay. Transactions are numbered from 1 again.
 */
public class TxnDbUtil {
  private static final String[] STATEMENTS = {
    "DELETE FROM TXN_COMPONENTS", "DELETE FROM COMPLETED_TXN_COMPONENTS", "DELETE FROM HIVE_LOCKS",
    "DELETE FROM TXN_TO_WRITE_ID", "DELETE FROM NEXT_WRITE_ID", "DELETE FROM MIN_HISTORY_LEVEL",
    "DELETE FROM COMPACTION_QUEUE", "DELETE FROM TXNS WHERE TXN_ID > 0", "ALTER TABLE TXNS AUTO_INCREMENT = 1",
    "UPDATE NEXT_LOCK_ID SET NL_NEXT = 1"
  };

  public static void setConfValues(Configuration conf) {}

  public static void prepDb(Configuration conf) throws Exception {
    cleanDb(conf);
  }

  public static void cleanDb(Configuration conf) throws Exception {
    try (Connection connection = DriverManager.getConnection(conf.get("javax.jdo.option.ConnectionURL"));
        Statement statement = connection.createStatement()) {
      for (String text : STATEMENTS) {
        statement.executeUpdate(text);
      }
    }
  }
}

package org.apache.iceberg.hive;

import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.conf.HiveConf.ConfVars;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.iceberg.catalog.TableIdentifier;

/**
 * Stands in front of the class of this name in Iceberg's tests, which starts Hive's metastore in the tests' process:
 * names the one at the property `metastore.uri`, whose warehouse is the directory `metastore.warehouse`.
 */
public class TestHiveMetastore {
  private static final String URI = System.getProperty("metastore.uri");
  private static final File WAREHOUSE = new File(System.getProperty("metastore.warehouse"));
  private static final int CLIENTS = 5;

  private HiveConf conf;

  public void start() {
    start(new HiveConf(new Configuration(), TestHiveMetastore.class));
  }

  public void start(HiveConf given) {
    start(given, CLIENTS);
  }

  public void start(HiveConf given, int clients) {
    start(given, clients, false);
  }

  /** Points the given configuration at the metastore, which is empty, as one that has just started. How many clients there are, and how it asks, is its own matter. */
  public void start(HiveConf given, int clients, boolean directSql) {
    given.set(ConfVars.METASTOREURIS.varname, URI);
    given.set(ConfVars.METASTOREWAREHOUSE.varname, "file:" + WAREHOUSE.getAbsolutePath());
    given.set("iceberg.hive.client-pool-size", "2");
    System.setProperty(ConfVars.METASTOREURIS.varname, URI);
    conf = given;
    try {
      reset();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  public void stop() throws Exception {
    if (conf != null) {
      reset();
    }
  }

  public HiveConf hiveConf() {
    return conf;
  }

  public String getDatabasePath(String name) {
    return new File(WAREHOUSE, name + ".db").getPath();
  }

  /** Drops everything but the database `default`, and all files. */
  public void reset() throws Exception {
    HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
    try {
      for (String database : client.getAllDatabases()) {
        for (String table : client.getAllTables(database)) {
          client.dropTable(database, table, true, true, true);
        }
        if (!database.equals("default")) {
          client.dropDatabase(database, true, true, true);
        }
      }
    } finally {
      client.close();
    }
    Path warehouse = new Path(WAREHOUSE.getAbsolutePath());
    FileSystem files = warehouse.getFileSystem(conf);
    for (FileStatus status : files.listStatus(warehouse)) {
      files.delete(status.getPath(), true);
    }
  }

  public Table getTable(String database, String table) throws Exception {
    HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
    try {
      return client.getTable(database, table);
    } finally {
      client.close();
    }
  }

  public Table getTable(TableIdentifier identifier) throws Exception {
    return getTable(identifier.namespace().toString(), identifier.name());
  }
}

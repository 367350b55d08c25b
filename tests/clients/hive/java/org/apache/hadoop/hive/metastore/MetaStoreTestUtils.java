package org.apache.hadoop.hive.metastore;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;
import org.apache.thrift.TException;

/** In place of the class that starts Hive's metastore for Hive's tests: what they ask for is the metastore of the site file. */
public class MetaStoreTestUtils {
  private static final String DATABASE = "javax.jdo.option.ConnectionURL";

  public static int startMetaStoreWithRetry() throws Exception {
    return startMetaStoreWithRetry(MetastoreConf.newMetastoreConf());
  }

  public static int startMetaStoreWithRetry(HadoopThriftAuthBridge bridge) throws Exception {
    return startMetaStoreWithRetry();
  }

  public static int startMetaStoreWithRetry(HadoopThriftAuthBridge bridge, Configuration conf) throws Exception {
    return startMetaStoreWithRetry(conf);
  }

  public static int startMetaStoreWithRetry(HadoopThriftAuthBridge bridge, Configuration conf, boolean houseKeeping)
      throws Exception {
    return startMetaStoreWithRetry(conf);
  }

  public static int startMetaStoreWithRetry(Configuration conf, boolean keepWarehouse) throws Exception {
    return startMetaStoreWithRetry(conf);
  }

  public static int startMetaStoreWithRetry(Configuration conf, boolean keepDatabase, boolean keepWarehouse)
      throws Exception {
    return startMetaStoreWithRetry(conf);
  }

  public static int startMetaStoreWithRetry(HadoopThriftAuthBridge bridge, Configuration conf, boolean keepDatabase,
      boolean keepWarehouse, boolean houseKeeping, boolean waitForHouseKeeping) throws Exception {
    return startMetaStoreWithRetry(conf);
  }

  public static int startMetaStoreWithRetry(HadoopThriftAuthBridge bridge, Configuration conf, boolean keepDatabase,
      boolean keepWarehouse, boolean houseKeeping, boolean waitForHouseKeeping, boolean transactional)
      throws Exception {
    return startMetaStoreWithRetry(conf);
  }

  /** Its port. The configuration is what the tests make their clients with, and look for the warehouse and the database. */
  public static int startMetaStoreWithRetry(Configuration conf) throws Exception {
    Configuration site = MetastoreConf.newMetastoreConf();
    String uri = MetastoreConf.getVar(site, ConfVars.THRIFT_URIS);
    MetastoreConf.setVar(conf, ConfVars.THRIFT_URIS, uri);
    MetastoreConf.setVar(conf, ConfVars.WAREHOUSE, MetastoreConf.getVar(site, ConfVars.WAREHOUSE));
    conf.set(DATABASE, site.get(DATABASE));
    return new URI(uri).getPort();
  }

  public static void close(int port) {}

  public static int findFreePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  /** What Hive's tests need of a metastore without Hive's engine is in the site file. */
  public static void setConfForStandloneMode(Configuration conf) {}

  public static String getTestWarehouseDir(String name) {
    return new File(System.getProperty("java.io.tmpdir"), name).getAbsolutePath();
  }

  public static void dropCatalogCascade(IMetaStoreClient client, String catalog) throws TException {
    if (catalog == null || catalog.equals(Warehouse.DEFAULT_CATALOG_NAME)) {
      return;
    }
    for (String database : client.getAllDatabases(catalog)) {
      client.dropDatabase(catalog, database, true, false, true);
    }
    client.dropCatalog(catalog);
  }
}

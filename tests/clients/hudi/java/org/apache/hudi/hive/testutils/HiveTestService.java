package org.apache.hudi.hive.testutils;

import java.io.IOException;
import java.net.ServerSocket;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.conf.HiveConf.ConfVars;
import org.apache.hive.service.server.HiveServer2;

/**
 * In place of the class of this name, which starts Hive's metastore for Hudi's tests: HiveServer2 in the tests' process with
 * the metastore at the property `metastore.uri`.
 */
public class HiveTestService {
  private static final int PORT = freePort();
  public static final String HS2_JDBC_URL = String.format("jdbc:hive2://127.0.0.1:%d/", PORT);

  private final HiveConf conf;
  private HiveServer2 server;

  public HiveTestService(Configuration given) throws IOException {
    conf = configureHive(given, null);
  }

  public HiveServer2 start() {
    server = new HiveServer2();
    server.init(conf);
    server.start();
    return server;
  }

  public void stop() {
    if (server != null) {
      server.stop();
      server = null;
    }
  }

  public HiveServer2 getHiveServer() {
    return server;
  }

  public HiveConf getHiveConf() {
    return conf;
  }

  public int getHiveServerPort() {
    return PORT;
  }

  public String getJdbcHive2Url() {
    return HS2_JDBC_URL;
  }

  public HiveConf configureHive(Configuration given, String directory) throws IOException {
    HiveConf found = new HiveConf(given, HiveTestService.class);
    found.setVar(ConfVars.METASTOREURIS, System.getProperty("metastore.uri"));
    found.setVar(ConfVars.METASTOREWAREHOUSE, System.getProperty("metastore.warehouse"));
    found.setVar(ConfVars.HIVE_SERVER2_THRIFT_BIND_HOST, "127.0.0.1");
    found.setIntVar(ConfVars.HIVE_SERVER2_THRIFT_PORT, PORT);
    found.setIntVar(ConfVars.HIVE_SERVER2_WEBUI_PORT, 0);
    found.setVar(ConfVars.SCRATCHDIR, System.getProperty("metastore.scratch"));
    found.setBoolVar(ConfVars.HIVE_CBO_ENABLED, false);
    System.setProperty(ConfVars.METASTOREURIS.varname, System.getProperty("metastore.uri"));
    return found;
  }

  private static int freePort() {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}

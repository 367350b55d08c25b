import java.util.List;
import java.util.TreeMap;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/**
 * Hive's own client over HTTP: arguments are key=value pairs of its configuration. A bearer token comes from the
 * environment (HMS_JWT), as this client has it.
 */
public class CallsOverHttp {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = MetastoreConf.newMetastoreConf();
    for (String argument : arguments) {
      int equals = argument.indexOf('=');
      configuration.set(argument.substring(0, equals), argument.substring(equals + 1));
    }
    HiveMetaStoreClient client = new HiveMetaStoreClient(configuration);
    TreeMap<String, String> parameters = new TreeMap<>();
    for (int number = 0; number < 30; number++) {
      parameters.put("k" + number, "x".repeat(3_500));
    }
    Database made = new Database("over_http", "c", null, parameters);
    client.createDatabase(made);
    for (int round = 0; round < 3; round++) {
      Database found = client.getDatabase("over_http");
      System.out.println(found.getName() + " of " + found.getOwnerName() + " "
          + String.join("", found.getParameters().values()).length());
    }
    List<String> names = client.getAllDatabases();
    System.out.println(String.join(",", names));
    try {
      client.getDatabase("none");
    } catch (org.apache.hadoop.hive.metastore.api.NoSuchObjectException missing) {
      System.out.println("missing");
    }
    client.dropDatabase("over_http");
    client.close();
    System.out.println("closed");
  }
}

package org.apache.hadoop.hive.metastore.client;

import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.minihms.MiniHMS;

/** Names one metastore to Hive's client tests: that of the site file which the property `client.site` names. */
public final class MetaStoreFactoryForTests {
  private MetaStoreFactoryForTests() {}

  public static List<Object[]> getMetaStores() throws Exception {
    Configuration site = MetastoreConf.newMetastoreConf();
    site.addResource(new Path(System.getProperty("client.site")));
    MiniHMS.Builder server = new MiniHMS.Builder().setConf(site).setType(MiniHMS.MiniHMSType.CLUSTER);
    return Collections.singletonList(new Object[] {"Cluster", server.build()});
  }
}

package io.trino.plugin.hive.metastore;

import io.trino.metastore.HiveMetastore;
import io.trino.plugin.hive.HiveTestUtils;
import io.trino.plugin.hive.TestingThriftHiveMetastoreBuilder;
import io.trino.plugin.hive.metastore.thrift.BridgingHiveMetastore;
import io.trino.plugin.hive.metastore.thrift.ThriftMetastoreConfig;
import java.net.URI;

/** Trino's tests of whatever metastore, with the one at the property `metastore.uri`. */
public class MetastoreTest extends AbstractTestHiveMetastore {
  private final HiveMetastore metastore =
      new BridgingHiveMetastore(
          TestingThriftHiveMetastoreBuilder.testingThriftHiveMetastoreBuilder()
              .metastoreClient(URI.create(System.getProperty("metastore.uri")))
              .thriftMetastoreConfig(new ThriftMetastoreConfig().setDeleteFilesOnDrop(true))
              .fileSystemFactory(HiveTestUtils.HDFS_FILE_SYSTEM_FACTORY)
              .build(closed -> {}));

  @Override
  protected HiveMetastore getMetastore() {
    return metastore;
  }
}

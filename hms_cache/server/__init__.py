"""The Thrift server: connections on one event loop, handlers on a bounded pool of threads, faults in Hive's types."""

"""Rules of Hive's metadata as pure functions, without SQL: names, values, orders, statistics. Used by all layers
above."""

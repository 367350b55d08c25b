"""Pure rules of Hive's metadata, without SQL: names, values, orders, statistics. Everything above may use them."""

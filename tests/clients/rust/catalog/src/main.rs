//! What a program does with the catalog of iceberg-rust. Arguments: the address, the transport, a directory.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::sync::Arc;

use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec};
use iceberg::{Catalog, CatalogBuilder, ErrorKind, NamespaceIdent, TableCreation, TableIdent};
use iceberg_catalog_hms::{HmsCatalog, HmsCatalogBuilder};

type Done = Result<(), Box<dyn Error>>;

fn kind<T>(result: iceberg::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn texts(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn schema() -> Result<Schema, iceberg::Error> {
    let types = [
        PrimitiveType::Boolean,
        PrimitiveType::Int,
        PrimitiveType::Long,
        PrimitiveType::Float,
        PrimitiveType::Double,
        PrimitiveType::Decimal { precision: 10, scale: 2 },
        PrimitiveType::Date,
        PrimitiveType::Timestamp,
        PrimitiveType::String,
        PrimitiveType::Binary,
    ];
    let fields = types.into_iter().enumerate().map(|(number, of)| {
        let id = number as i32 + 1;
        Arc::new(NestedField::optional(id, format!("c{id}"), Type::Primitive(of)))
    });
    Schema::builder().with_fields(fields.collect::<Vec<_>>()).build()
}

async fn namespaces(catalog: &HmsCatalog, directory: &str) -> Done {
    let default = catalog.get_namespace(&NamespaceIdent::new("default".into())).await?;
    assert_eq!(default.properties()["comment"], "Default Hive database");
    assert_eq!(default.properties()["hive.metastore.database.owner-type"], "Role");
    let name = NamespaceIdent::new("rust".into());
    assert_eq!(kind(catalog.get_namespace(&name).await), Some(ErrorKind::NamespaceNotFound));
    assert!(!catalog.namespace_exists(&name).await?);
    let path = format!("{directory}/rust.db"); // of anything else it makes a path
    let location = format!("file:{path}");
    let given = texts(&[("comment", "of Rust"), ("location", &path), ("a", "ü")]);
    catalog.create_namespace(&name, given.clone()).await?;
    assert_eq!(kind(catalog.create_namespace(&name, given).await), Some(ErrorKind::NamespaceAlreadyExists));
    let found = catalog.get_namespace(&name).await?;
    for (key, value) in [("comment", "of Rust"), ("location", &location), ("a", "ü")] {
        assert_eq!(found.properties()[key], value, "{key}");
    }
    let changed = texts(&[("comment", "changed"), ("b", "2"), ("hive.metastore.database.owner", "o"),
        ("hive.metastore.database.owner-type", "user")]);
    catalog.update_namespace(&name, changed).await?;
    let found = catalog.get_namespace(&name).await?;
    assert_eq!(found.properties()["b"], "2");
    assert_eq!(found.properties().get("a"), None);
    assert!(catalog.list_namespaces(None).await?.contains(&name));
    let none = NamespaceIdent::new("none".into());
    assert_eq!(kind(catalog.drop_namespace(&none).await), Some(ErrorKind::NamespaceNotFound));
    assert_eq!(kind(catalog.list_tables(&none).await), Some(ErrorKind::NamespaceNotFound));
    Ok(())
}

async fn tables(catalog: &HmsCatalog, directory: &str) -> Done {
    let name = NamespaceIdent::new("rust".into());
    let table = TableIdent::new(name.clone(), "t".into());
    let location = format!("{directory}/rust.db/t");
    fs::create_dir_all(format!("{location}/metadata"))?;
    assert!(!catalog.table_exists(&table).await?);
    let creation = TableCreation::builder()
        .name("t".into())
        .location(location.clone())
        .schema(schema()?)
        .partition_spec(UnboundPartitionSpec::builder().add_partition_field(7, "day", Transform::Identity)?.build())
        .properties(texts(&[("owner", "someone"), ("k", "v")]))
        .build();
    let created = catalog.create_table(&name, creation).await?;
    assert!(catalog.table_exists(&table).await?);
    let loaded = catalog.load_table(&table).await?;
    assert_eq!(loaded.metadata(), created.metadata());
    assert_eq!(loaded.metadata_location(), created.metadata_location());
    assert_eq!(catalog.list_tables(&name).await?, [table.clone()]);

    let renamed = TableIdent::new(name.clone(), "u".into());
    catalog.rename_table(&table, &renamed).await?;
    assert!(!catalog.table_exists(&table).await?);
    assert_eq!(catalog.load_table(&renamed).await?.metadata(), created.metadata());
    assert_eq!(kind(catalog.rename_table(&renamed, &renamed).await), Some(ErrorKind::TableAlreadyExists));

    assert!(catalog.load_table(&table).await.is_err());
    assert_eq!(kind(catalog.drop_table(&table).await), Some(ErrorKind::TableNotFound));
    catalog.drop_table(&renamed).await?;
    assert!(catalog.list_tables(&name).await?.is_empty());
    assert!(fs::metadata(&location)?.is_dir()); // an external table's files stay
    catalog.drop_namespace(&name).await?;
    assert!(!catalog.namespace_exists(&name).await?);
    Ok(())
}

#[tokio::main]
async fn main() -> Done {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, address, transport, directory] = arguments.as_slice() else { panic!("three arguments") };
    let properties = texts(&[("uri", address), ("thrift_transport", transport), ("warehouse", directory)]);
    let catalog = HmsCatalogBuilder::default()
        .with_storage_factory(Arc::new(LocalFsStorageFactory))
        .load("hms", properties)
        .await?;
    namespaces(&catalog, directory).await?;
    tables(&catalog, directory).await?;
    println!("every answer is the one expected");
    Ok(())
}

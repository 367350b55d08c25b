//! Calls of a metastore as iceberg-rust makes them, and those of partitions, locks and notifications.
//! Arguments: the address; `buffered` or `framed`. Exits with 0 if every answer is the one expected.

use hive_metastore::*;
use pilota::{AHashMap, FastStr};
use volo_thrift::codec::default::DefaultMakeCodec;
use volo_thrift::MaybeException::{self, Exception, Ok as Answer};

fn text(value: &str) -> Option<FastStr> {
    Some(FastStr::new(value))
}

/// The answer, where neither the connection nor the metastore refuses.
fn got<T, E: std::fmt::Debug>(reply: Result<MaybeException<T, E>, volo_thrift::ClientError>) -> T {
    match reply.expect("a reply") {
        Answer(value) => value,
        Exception(error) => panic!("refused: {error:?}"),
    }
}

fn column(name: &str, kind: &str) -> FieldSchema {
    FieldSchema {
        name: text(name),
        r#type: text(kind),
        comment: None,
    }
}

macro_rules! calls {
    ($client:expr, $db:expr) => {{
        let (client, db) = ($client, FastStr::new($db));
        let name = FastStr::from_static_str("Events");
        got(client
            .create_database(Database {
                name: Some(db.clone()),
                ..Default::default()
            })
            .await);
        assert!(got(client.get_all_databases().await).contains(&db));
        let read = got(client.get_database(db.clone()).await);
        assert_eq!(
            (read.name, read.owner_type),
            (Some(db.clone()), Some(PrincipalType::USER))
        );
        let columns = vec![column("id", "bigint"), column("größe", "string")];
        let descriptor = StorageDescriptor {
            cols: Some(columns),
            serde_info: Some(SerDeInfo {
                serialization_lib: text("s.S"),
                ..Default::default()
            }),
            ..Default::default()
        };
        let parameters: AHashMap<_, _> = [(FastStr::new("metadata_location"), FastStr::new("0.json"))]
            .into_iter()
            .collect();
        let table = Table {
            table_name: Some(name.clone()),
            db_name: Some(db.clone()),
            sd: Some(descriptor.clone()),
            partition_keys: Some(vec![column("day", "int")]),
            parameters: Some(parameters),
            table_type: text("EXTERNAL_TABLE"),
            ..Default::default()
        };
        got(client.create_table(table.clone()).await);
        match client.create_table(table).await.expect("a reply") {
            Exception(ThriftHiveMetastoreCreateTableException::O1(_)) => (),
            Answer(_) => panic!("no refusal"),
            Exception(other) => panic!("{other:?}"),
        }
        match client
            .get_table(db.clone(), FastStr::new("missing"))
            .await
            .expect("a reply")
        {
            Exception(ThriftHiveMetastoreGetTableException::O2(_)) => (),
            Answer(_) => panic!("no refusal"),
            Exception(other) => panic!("{other:?}"),
        }
        for round in 0..3 {
            let mut found = got(client.get_table(db.clone(), name.clone()).await);
            assert_eq!(found.sd.as_ref().unwrap().cols, descriptor.cols);
            let parameters = found.parameters.as_mut().unwrap();
            assert_eq!(parameters["metadata_location"], format!("{round}.json"));
            parameters.insert(
                FastStr::new("metadata_location"),
                FastStr::new(format!("{}.json", round + 1)),
            );
            let context = [
                ("expected_parameter_key", "metadata_location".into()),
                ("expected_parameter_value", format!("{round}.json")),
            ];
            let context = context
                .into_iter()
                .map(|(key, value)| (FastStr::new(key), FastStr::new(value)))
                .collect();
            let context = EnvironmentContext {
                properties: Some(context),
            };
            let again = found.clone();
            got(client
                .alter_table_with_environment_context(db.clone(), name.clone(), found, context.clone())
                .await);
            match client
                .alter_table_with_environment_context(db.clone(), name.clone(), again, context)
                .await
                .expect("a reply")
            {
                Exception(_) => (),
                Answer(()) => panic!("the second of two commits was taken"),
            }
        }
        for day in 1..=3 {
            let mut place = descriptor.clone();
            let whole = got(client.get_table(db.clone(), name.clone()).await)
                .sd
                .unwrap()
                .location
                .unwrap();
            place.location = Some(FastStr::new(format!("{whole}/day={day}")));
            got(client
                .add_partition(Partition {
                    values: Some(vec![FastStr::new(day.to_string())]),
                    db_name: Some(db.clone()),
                    table_name: Some(name.clone()),
                    sd: Some(place),
                    ..Default::default()
                })
                .await);
        }
        assert_eq!(
            got(client.get_partition_names(db.clone(), name.clone(), -1).await),
            ["day=1", "day=2", "day=3"]
        );
        let above = got(client
            .get_partitions_by_filter(db.clone(), name.clone(), FastStr::new("day > 1"), -1)
            .await);
        assert_eq!(above.len(), 2);
        assert!(above
            .iter()
            .all(|each| each.sd.as_ref().unwrap().cols == descriptor.cols));
        let request = LockRequest {
            component: vec![LockComponent {
                r#type: LockType::EXCLUSIVE,
                level: LockLevel::TABLE,
                dbname: db.clone(),
                tablename: Some(name.clone()),
                ..Default::default()
            }],
            user: FastStr::new("me"),
            hostname: FastStr::new("here"),
            ..Default::default()
        };
        let held = got(client.lock(request.clone()).await);
        assert_eq!(held.state, LockState::ACQUIRED);
        let waiting = got(client.lock(request).await);
        assert_eq!(waiting.state, LockState::WAITING);
        got(client
            .unlock(UnlockRequest {
                lockid: held.lockid,
                ..Default::default()
            })
            .await);
        let checked = got(client
            .check_lock(CheckLockRequest {
                lockid: waiting.lockid,
                ..Default::default()
            })
            .await);
        assert_eq!(checked.state, LockState::ACQUIRED);
        got(client
            .unlock(UnlockRequest {
                lockid: waiting.lockid,
                ..Default::default()
            })
            .await);
        let log = client
            .get_next_notification(NotificationEventRequest {
                last_event: 0,
                max_events: None,
            })
            .await;
        let log = log.expect("a reply");
        assert!(log
            .events
            .iter()
            .any(|event| event.event_type == "ADD_PARTITION" && event.db_name == Some(db.clone())));
        got(client.drop_table(db.clone(), name.clone(), true).await);
        got(client.drop_database(db.clone(), true, false).await);
    }};
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let address: std::net::SocketAddr = arguments[1].parse().unwrap();
    let builder = ThriftHiveMetastoreClientBuilder::new("hms").address(address);
    match arguments[2].as_str() {
        "buffered" => calls!(
            builder.make_codec(DefaultMakeCodec::buffered()).build(),
            "of_buffered"
        ),
        "framed" => calls!(
            builder.make_codec(DefaultMakeCodec::framed()).build(),
            "of_framed"
        ),
        other => panic!("{other}"),
    }
    println!("every answer is the one expected");
}

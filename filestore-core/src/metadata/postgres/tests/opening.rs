//! Opening, reopening, refusing.

use super::*;
use crate::domain::error::ErrorKind;
use crate::domain::id::StoreId;
use crate::metadata::contract::{at, get, insert, put, ready};
use crate::metadata::prelude::*;

fn refusal(schema: &Schema) -> String {
    let error = wait(PostgresMetadata::open(&schema.options())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unusable, "{}", error.chain());
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn servers_that_start_together_open_one_store() {
    let schema = Schema::new();
    let options = schema.options();
    let opened = (0..6).map(|_| PostgresMetadata::open(&options));
    let opened = futures_util::future::try_join_all(opened).await.unwrap();

    let id = opened[0].store_id();
    assert!(opened.iter().all(|metadata| metadata.store_id() == id));
    let record = put(&opened[0], ready("acme")).await;
    for metadata in &opened {
        assert_eq!(get(metadata, record.file_id).await.as_deref(), Some(&record));
    }

    let another = StoreId::generate(at(7));
    let again = PostgresMetadata::open_known_as(another, &options).await.unwrap();
    assert_eq!(again.store_id(), id, "it has one already");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_newer_schema_is_refused_unless_it_says_that_this_program_can_read_it() {
    let (metadata, schema) = fresh();
    metadata.close().await;
    schema.run(
        "INSERT INTO schema_versions VALUES (13, 12); ALTER TABLE files ADD COLUMN later text",
    );
    let older = schema.open();
    let record = put(&older, ready("acme")).await;
    assert_eq!(get(&older, record.file_id).await.as_deref(), Some(&record));

    schema.run("INSERT INTO schema_versions VALUES (14, 13)");
    let message = refusal(&schema);
    assert!(message.ends_with("it knows schema 12, the database has 14"), "{message}");
    put(&older, ready("acme")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn another_programs_schema_is_refused_untouched() {
    let schema = Schema::new();
    let name = schema.options().schema;
    schema.run(&format!("CREATE SCHEMA {name}; CREATE TABLE {name}.theirs (a int)"));
    let message = refusal(&schema);
    assert_eq!(message, format!("the schema of the database belongs to another program: {name}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_may_lose_commits_is_refused_unless_that_was_asked_for() {
    let schema = Schema::new();
    let address = std::env::var(ADDRESS).unwrap();
    let lossy = PostgresOptions::new(&format!("{address}?options=-csynchronous_commit%3Doff"));
    let lossy = lossy.unwrap().with_schema(schema.options().schema);

    let full = lossy.clone().with_durability(Durability::Full);
    let error = PostgresMetadata::open(&full).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert!(error.to_string().contains("synchronous_commit is off"), "{error}");

    let process = lossy.with_durability(Durability::Process);
    PostgresMetadata::open(&process).await.unwrap().ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_wrong_password_is_refused_and_not_shown() {
    let schema = Schema::new();
    let options = schema.options().with_password("geheim");
    let error = PostgresMetadata::open(&options).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert_eq!(error.to_string(), "the database refuses the connection");
    let chain = format!("{error:?} {}", error.chain());
    assert!(chain.contains("password authentication failed for user"), "{chain}");
    assert!(!chain.contains("geheim"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_connection_that_fails_names_its_cause() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let chain = async |address: String| {
        let options = PostgresOptions::new(&address).unwrap().with_password("geheim");
        let error = PostgresMetadata::open(&options).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
        assert!(!error.chain().contains("geheim"), "{}", error.chain());
        error.chain()
    };

    let closed = chain(format!("postgres://u@127.0.0.1:{port}/d")).await;
    assert!(closed.contains("Connection refused"), "{closed}");
    let nowhere = chain("postgres://u@nowhere.invalid/d?sslmode=disable".to_owned()).await;
    assert!(nowhere.contains("lookup"), "{nowhere}");
    let tls = std::env::var(ADDRESS).unwrap() + "?sslmode=require";
    let untrusted = chain(tls).await;
    assert!(untrusted.contains("certificate"), "{untrusted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_fault_keeps_the_values_of_rows_to_itself() {
    let (metadata, schema) = fresh();
    schema.run("ALTER TABLE files ADD CONSTRAINT odd CHECK (original_name = 'secret')");
    let error = metadata.insert_files(insert([ready("acme")])).await.unwrap_err();
    let chain = error.chain();
    assert!(chain.contains("odd") && !chain.contains("grüße"), "{chain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_database_that_takes_no_writes_is_refused() {
    let schema = Schema::new();
    let address = std::env::var(ADDRESS).unwrap();
    let readers = format!("{address}?options=-cdefault_transaction_read_only%3Don");
    let options = PostgresOptions::new(&readers).unwrap().with_schema(schema.name());
    let options = options.with_durability(Durability::Process);
    let error = PostgresMetadata::open(&options).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unusable, "{}", error.chain());
    assert!(error.to_string().contains("default_transaction_read_only"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_standby_is_refused_until_it_is_promoted_and_an_unsafe_disk_for_good() {
    let (metadata, schema) = fresh();
    let record = put(&metadata, ready("acme")).await;
    let port: u16 = service(&["standby"]).await.parse().unwrap();
    let mut options = schema.options();
    let own = options.server.get_ports()[0];
    let address = std::env::var(ADDRESS).unwrap();
    let address = address.replace(&format!(":{own}/"), &format!(":{port}/"));
    options.server = PostgresOptions::new(&address).unwrap().server;

    let error = PostgresMetadata::open(&options).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unusable, "{}", error.chain());
    assert!(error.to_string().contains("a standby"), "{error}");

    service(&["promote"]).await;
    let promoted = PostgresMetadata::open(&options).await.unwrap();
    assert_eq!(get(&promoted, record.file_id).await.as_deref(), Some(&record));
    promoted.close().await;

    for setting in ["fsync", "full_page_writes"] {
        service(&["unsafe", setting]).await;
        for durability in [Durability::Full, Durability::Process] {
            let unsafe_disk = options.clone().with_durability(durability);
            let error = PostgresMetadata::open(&unsafe_disk).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unusable, "{}", error.chain());
            assert!(error.to_string().contains(&format!("{setting} is off")), "{error}");
        }
    }
    service(&["drop-standby"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn tls_is_spoken_with_a_server_whose_certificate_is_trusted_alone() {
    let schema = Schema::new();
    let address = std::env::var(ADDRESS).unwrap().replace("127.0.0.1", "localhost");
    let open = async |parameters: &str| {
        let options = PostgresOptions::new(&format!("{address}?{parameters}")).unwrap();
        let options = options.with_schema(schema.options().schema);
        PostgresMetadata::open(&options.with_durability(Durability::Process)).await
    };

    let error = open("sslmode=require").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
    let ca = std::env::var("FILESTORE_TEST_POSTGRES_CA").unwrap();
    let metadata = open(&format!("sslmode=verify-full&sslrootcert={ca}")).await.unwrap();
    metadata.ping().await.unwrap();
}

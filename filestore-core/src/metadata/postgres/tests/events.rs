//! Readers of the log beside open writes. A control, a reader that goes on behind the last position it saw, must
//! miss some.

use tokio_postgres::Client;

use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::event::{After, EventFilter};
use crate::domain::time::clock::Timestamp;
use crate::metadata::contract::{at, get, put, ready};
use crate::metadata::prelude::*;
use crate::metadata::{LogOrder, LogRange, LogSwitch};
use crate::service::{FileStore, NewUpload};

/// An engine with a log that is on.
async fn logged() -> (PostgresMetadata, Schema) {
    let (metadata, schema) = fresh();
    metadata.open_events(LogSwitch::On, [7; 32], Timestamp::from_millis(0)).await.unwrap();
    (metadata, schema)
}

/// A connection of another program, or of another server.
async fn connected(schema: &Schema) -> Client {
    let (client, connection) =
        schema.options().server.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path TO {}", schema.name())).await.unwrap();
    client
}

/// Begins a transaction, and writes an event in it. Returns the position.
async fn open_write(client: &Client) -> u64 {
    client.batch_execute("BEGIN").await.unwrap();
    let insert = "INSERT INTO events (at, kind) VALUES (1, 'backup.ended') RETURNING position";
    client.query_one(insert, &[]).await.unwrap().get::<_, i64>(0).unsigned_abs()
}

async fn end(client: &Client, with: &str) {
    client.batch_execute(with).await.unwrap();
}

/// A reader through the engine.
struct Reader<'m> {
    metadata: &'m PostgresMetadata,
    seen: Vec<u64>,
}

impl Reader<'_> {
    async fn read(&mut self) -> Vec<u64> {
        let from = Some(self.seen.last().copied().unwrap_or(0));
        let range = LogRange { from, order: LogOrder::Forward, organizations: None, limit: 100 };
        let part = self.metadata.read_events(&range).await.unwrap();
        self.seen.extend(part.rows.iter().map(|row| row.position));
        self.seen.clone()
    }

    /// Reads until the log ends at `position`.
    async fn read_up_to(&mut self, position: u64) -> Vec<u64> {
        while self.read().await.last() != Some(&position) {
            self.metadata.await_events(position - 1).await.unwrap();
        }
        self.seen.clone()
    }
}

/// The control: goes on behind the last position that was visible.
struct Plain {
    client: Client,
    seen: Vec<u64>,
}

impl Plain {
    async fn read(&mut self) {
        let from = i64::try_from(self.seen.last().copied().unwrap_or(0)).unwrap();
        let query = "SELECT position FROM events WHERE position > $1 ORDER BY position";
        let rows = self.client.query(query, &[&from]).await.unwrap();
        self.seen.extend(rows.iter().map(|row| row.get::<_, i64>(0).unsigned_abs()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn writes_that_commit_in_either_order_are_all_read_and_in_order() {
    let (metadata, schema) = logged().await;
    let mut reader = Reader { metadata: &metadata, seen: Vec::new() };
    let mut plain = Plain { client: connected(&schema).await, seen: Vec::new() };
    let writers = [connected(&schema).await, connected(&schema).await];
    let mut written = Vec::new();

    for order in [[0, 1], [1, 0]] {
        for writer in &writers {
            written.push(open_write(writer).await);
        }
        for writer in order {
            reader.read().await;
            plain.read().await;
            end(&writers[writer], "COMMIT").await;
        }
        reader.read().await;
        plain.read().await;
    }
    assert!(written.is_sorted());
    assert_eq!(reader.read_up_to(*written.last().unwrap()).await, written);
    assert_eq!(plain.seen, [written[0], written[1], written[3]], "the control misses one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_stopped_writer_holds_back_later_events_until_it_ends() {
    let (metadata, schema) = logged().await;
    let mut reader = Reader { metadata: &metadata, seen: Vec::new() };
    let (stopped, other) = (connected(&schema).await, connected(&schema).await);
    let earlier = open_write(&other).await;
    end(&other, "COMMIT").await;
    assert_eq!(reader.read().await, [earlier]);

    open_write(&stopped).await;
    let later = open_write(&other).await;
    end(&other, "COMMIT").await;
    for _ in 0..3 {
        assert_eq!(reader.read().await, [earlier]);
    }
    end(&stopped, "ROLLBACK").await;
    assert_eq!(reader.read_up_to(later).await, [earlier, later]);

    // A writer whose connection breaks.
    open_write(&stopped).await;
    let last = open_write(&other).await;
    end(&other, "COMMIT").await;
    drop(stopped);
    assert_eq!(reader.read_up_to(last).await, [earlier, later, last]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn transactions_that_write_no_events_stop_no_reader() {
    let (metadata, schema) = logged().await;
    let mut reader = Reader { metadata: &metadata, seen: Vec::new() };
    let foreign = connected(&schema).await;
    let work = "BEGIN; SELECT pg_current_xact_id(); SELECT count(*) FROM events;
        INSERT INTO settings (name, value) VALUES ('foreign', 'work'); LOCK TABLE blob_gc IN ROW EXCLUSIVE MODE";
    foreign.batch_execute(work).await.unwrap();

    put(&metadata, ready("acme")).await;
    assert_eq!(reader.read().await.len(), 1, "although an older transaction is open");
    end(&foreign, "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_write_that_waited_for_a_file_is_told_after_the_one_it_waited_for() {
    let (metadata, schema) = logged().await;
    let record = put(&metadata, ready("acme")).await;
    let raise = format!(
        "UPDATE files SET version = version + 1, updated_at = {} WHERE file_id = '{}'",
        at(1).as_millis(),
        record.file_id
    );
    let (older, younger) = (connected(&schema).await, connected(&schema).await);
    older.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    younger.batch_execute(&format!("BEGIN; {raise}")).await.unwrap();

    let waits = async {
        older.batch_execute(&raise).await.unwrap();
        end(&older, "COMMIT").await;
    };
    let commits = async {
        let waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'";
        while younger.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        end(&younger, "COMMIT").await;
    };
    tokio::join!(waits, commits);

    assert_eq!(get(&metadata, record.file_id).await.unwrap().version, 3);
    let range = LogRange { from: Some(0), order: LogOrder::Forward, organizations: None, limit: 9 };
    let rows = metadata.read_events(&range).await.unwrap().rows;
    let versions: Vec<_> = rows.iter().map(|row| row.body.as_ref().unwrap().version).collect();
    assert_eq!(versions, [Some(1), Some(2), Some(3)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn the_log_of_another_server_is_read_within_a_wait() {
    let (metadata, schema) = logged().await;
    let other = schema.open();
    let (waited, record) =
        tokio::join!(metadata.await_events(0), async { put(&other, ready("acme")).await });
    waited.unwrap();
    let range = LogRange { from: Some(0), order: LogOrder::Forward, organizations: None, limit: 9 };
    let rows = metadata.read_events(&range).await.unwrap().rows;
    assert_eq!(rows[0].body.as_ref().unwrap().file_id, Some(record.file_id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn the_end_of_a_log_is_not_its_start_while_nothing_is_settled() {
    let (dir, schema) = (tempfile::tempdir().unwrap(), Schema::new());
    let open = || FileStore::builder(dir.path()).config(schema.store_config()).open();
    let store = open().await.unwrap();
    let upload = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
    store.upload(upload, &b"bytes"[..]).await.unwrap();
    store.close().await;
    drop(store);

    let client = connected(&schema).await;
    open_write(&client).await;
    let store = open().await.unwrap();
    let newest = async || {
        let page = store.events(&Scope::All).page(&EventFilter::new(), After::End, 9).await;
        page.map(|page| page.next).map_err(|error| error.kind())
    };
    assert_eq!(newest().await, Err(ErrorKind::Busy));
    end(&client, "COMMIT").await;
    assert!(matches!(newest().await, Ok(After::Event(_))));
    store.close().await;
}

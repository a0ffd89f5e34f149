//! The rows that statements touch, and what they cost, in a small and in a large table.

use serde_json::Value;
use tokio_postgres::SimpleQueryMessage;

use super::*;
use crate::domain::file::listing::ListFilter;
use crate::metadata::paging::Index;
use crate::metadata::postgres::tables::{events, files, listing};
use crate::metadata::postgres::work::{destinations, dropped, purges, syncs};

/// Makes the functions that fill a schema.
const FILL: &str = include_str!("fill.sql");

/// The schema that is filled already, and the number of its files, of the run that compares costs.
const LARGE: [&str; 2] = ["FILESTORE_TEST_LARGE_SCHEMA", "FILESTORE_TEST_LARGE_FILES"];

/// The rows of a page, and of a claim.
const LIMIT: usize = 100;

/// The runs of each statement of which the median is taken.
const RUNS: usize = 101;

/// Later than all that was filled in.
const LATER: u64 = 1_995_000_000_000;

/// A statement of the engine, its parameters, and the most rows that its scans may touch.
struct Case {
    name: &'static str,
    statement: String,
    /// SQL for the parameters, for the file of a number.
    parameters: fn(u64) -> String,
    most: usize,
}

fn case(
    name: &'static str,
    statement: impl Into<String>,
    parameters: fn(u64) -> String,
    most: usize,
) -> Case {
    Case { name, statement: statement.into(), parameters, most }
}

fn cases() -> Vec<Case> {
    let page = listing::query(Index::Plain, true, &ListFilter::default());
    let all = listing::query(Index::Plain, false, &ListFilter::default());
    vec![
        case("look-up", files::BY_ID, id_of, 1),
        case(
            "look-up within an organization",
            files::WITHIN,
            |n| format!("{}, ARRAY['{}']", id_of(n), owner_of(n)),
            1,
        ),
        case("insert of a record", "SELECT fill($1, $1)", |n| (LATER + n).to_string(), 0),
        case(
            "listing of an organization",
            page,
            |n| {
                let organization = organization_of(n);
                format!(
                    "ARRAY['{organization}'], ARRAY['READY'], ARRAY[{}], ARRAY[''], {LIMIT}",
                    id_of(n)
                )
            },
            LIMIT,
        ),
        case(
            "listing of all",
            all,
            |n| format!("ARRAY[''], ARRAY['READY'], ARRAY[{}], ARRAY[''], {LIMIT}", id_of(n)),
            LIMIT,
        ),
        case("purge claim", purges::UNCLAIMED, |_| format!("'house', {LATER}, {LIMIT}"), LIMIT),
        case(
            "purge claim, written",
            purges::CLAIM,
            |n| format!("ARRAY[{}], 'owner', {LATER}", deleted_ids(n)),
            LIMIT,
        ),
        case("expiry", purges::EXPIRE, |_| format!("{LATER}, {LIMIT}"), 2 * LIMIT),
        case(
            "sync claim, found",
            syncs::DUE,
            |n| {
                format!(
                    "ARRAY['{}'], ARRAY['house'], {LATER}, {LIMIT}, {LIMIT}",
                    organization_of(n)
                )
            },
            LIMIT,
        ),
        case(
            "sync claim, taken",
            syncs::CLAIMABLE,
            |n| format!("ARRAY[{}], {LATER}", pending_ids(n)),
            LIMIT,
        ),
        case(
            "sync, pairs of organization and provider",
            destinations::PAIRS,
            |_| String::new(),
            2 * 101,
        ),
        case(
            "claim of dropped blobs",
            dropped::CLAIMABLE,
            |_| format!("'house', {LATER}, {LIMIT}, 0"),
            LIMIT,
        ),
    ]
}

fn id_of(number: u64) -> String {
    format!("'01M7ZDTTF3{number:016}'")
}

/// Returns one of the organizations that have more than a page of any kind, also in the small table: half of a page
/// costs half as much.
fn organization_of(number: u64) -> String {
    format!("org{}", number % 4)
}

/// Returns the organization of the file of a number, as `fill.sql` has it.
fn owner_of(number: u64) -> String {
    let organizations = if (number / 10).is_multiple_of(2) { 4 } else { 100 };
    format!("org{}", number / 20 % organizations)
}

/// Returns the ids of the file of a number, rounded to tens, and of the ones behind it.
fn ids(number: u64, offset: u64) -> String {
    let first = number / 10 * 10 + offset;
    let ids = (0..LIMIT as u64).map(|at| id_of(first + at * 10));
    ids.collect::<Vec<_>>().join(", ")
}

fn deleted_ids(number: u64) -> String {
    ids(number, 0)
}

fn pending_ids(number: u64) -> String {
    ids(number, 1)
}

/// A table with so many files.
struct Table {
    client: deadpool_postgres::Object,
    files: u64,
}

/// The rows that a statement touched, those that it found, and its time.
#[derive(Debug, Clone, Copy)]
struct Cost {
    rows: usize,
    found: f64,
    millis: f64,
}

impl Table {
    /// Makes the functions that fill a table, and fills it.
    async fn filled(schema: &Schema, files: u64) -> Self {
        let table = Self::of(&schema.options(), files).await;
        table.client.batch_execute(FILL).await.unwrap();
        let filling = format!("SELECT fill(1, {files}); SELECT analyze_tables()");
        table.client.batch_execute(&filling).await.unwrap();
        table
    }

    async fn of(options: &PostgresOptions, files: u64) -> Self {
        let pool = crate::metadata::postgres::session::pool::pool(options).unwrap();
        Self { client: pool.get().await.unwrap(), files }
    }

    async fn prepare(&self, cases: &[Case]) {
        self.client.batch_execute("SET plan_cache_mode TO force_generic_plan").await.unwrap();
        for (at, case) in cases.iter().enumerate() {
            let statement = format!("PREPARE case_{at} AS {}", case.statement);
            self.client.batch_execute(&statement).await.unwrap();
        }
    }

    /// Runs a statement for a file by chance, and takes back what it did.
    async fn cost(&self, at: usize, case: &Case) -> Cost {
        // The upper half of the ids: before each of them is a whole page, in the small table too.
        let last = self.files.saturating_sub(LIMIT as u64 * 10).max(1);
        self.cost_at(at, case, fastrand::u64(self.files / 2..=last)).await
    }

    async fn cost_at(&self, at: usize, case: &Case, number: u64) -> Cost {
        let parameters = (case.parameters)(number);
        let parameters = if parameters.is_empty() { parameters } else { format!("({parameters})") };
        let explain = format!("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE case_{at}{parameters}");

        self.client.batch_execute("BEGIN").await.unwrap();
        // As text: the type of the column is json.
        let said = self.client.simple_query(&explain).await;
        let said = said.unwrap_or_else(|error| panic!("{}: {error:?}", case.name));
        let rows_said = said.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let text: String = rows_said.collect();
        self.client.batch_execute("ROLLBACK").await.unwrap();
        let explained: Value = serde_json::from_str(&text).unwrap();
        Cost {
            rows: rows(&explained[0]["Plan"]),
            found: explained[0]["Plan"]["Actual Rows"].as_f64().unwrap(),
            millis: explained[0]["Execution Time"].as_f64().unwrap(),
        }
    }

    /// Runs a statement twice at a place; the second time finds what it reads in memory.
    async fn warm_cost(&self, at: usize, case: &Case) -> Cost {
        let last = self.files.saturating_sub(LIMIT as u64 * 10).max(1);
        let number = fastrand::u64(self.files / 2..=last);
        self.cost_at(at, case, number).await;
        self.cost_at(at, case, number).await
    }
}

/// Returns the median of the times, and the most rows.
fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_by(|one, other| one.millis.total_cmp(&other.millis));
    let rows = costs.iter().map(|cost| cost.rows).max().unwrap();
    Cost { rows, ..costs[costs.len() / 2] }
}

/// Counts the rows that the scans of a plan read, those that they passed over included.
fn rows(plan: &Value) -> usize {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let is_scan = plan["Node Type"].as_str().unwrap().contains("Index");
    let passed = number("Rows Removed by Filter") + number("Rows Removed by Index Recheck");
    let own = if is_scan { (number("Actual Rows") + passed) * number("Actual Loops") } else { 0.0 };
    let below = plan["Plans"].as_array().map(Vec::as_slice).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let own = own.round() as usize;
    own + below.iter().map(rows).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn what_a_statement_touches_is_bounded_by_its_page_or_claim() {
    let (_metadata, schema) = fresh();
    let table = Table::filled(&schema, 20_000).await;
    let cases = cases();
    table.prepare(&cases).await;
    for (at, case) in cases.iter().enumerate() {
        let Cost { rows, .. } = table.cost(at, case).await;
        assert!(rows <= case.most, "{}: {rows} rows, {} allowed", case.name, case.most);
    }
}

/// Writes 20,000 events. Every thousandth is of an organization with few events.
const FILL_EVENTS: &str =
    "INSERT INTO events (at, kind, organization_id, sub_system, file_id, version)
     SELECT n, 'file.ready', CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'org' || n % 4 END, 'docs',
     '01M7ZDTTF3' || lpad(n::text, 16, '0'), 1 FROM generate_series(1, 20000) AS n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn what_readers_of_events_touch_is_bounded_by_their_page() {
    let (_metadata, schema) = fresh();
    let table = Table::of(&schema.options(), 1).await;
    table.client.batch_execute(FILL_EVENTS).await.unwrap();
    table.client.batch_execute("ANALYZE events").await.unwrap();
    let cases = [
        case("page", events::FORWARD, |_| format!("10000, 20000, {LIMIT}"), LIMIT),
        case("page back", events::BACKWARD, |_| format!("10000, 20000, {LIMIT}"), LIMIT),
        case("page of one", events::FORWARD_OF, |_| format!("0, 20000, {LIMIT}, 'rare'"), 20),
        case(
            "page back of one",
            events::BACKWARD_OF,
            |_| format!("20001, 20000, {LIMIT}, 'rare'"),
            20,
        ),
        case("newest", events::NEWEST, |_| "20000".to_owned(), 1),
        case("oldest", events::FIRST, |_| "1".to_owned(), 1),
        case("forgetting", events::FORGET, |_| format!("1, {LIMIT}"), LIMIT),
        // Found, and then changed.
        case("blanking", events::BLANK, |_| "'rare', 10".to_owned(), 2 * 10),
    ];
    table.prepare(&cases).await;
    for (at, case) in cases.iter().enumerate() {
        let Cost { rows, .. } = table.cost_at(at, case, 0).await;
        assert!((1..=case.most).contains(&rows), "{}: {rows} rows, {}", case.name, case.most);
    }
}

/// `tests/load/postgres` runs it: it fills the large table, and shows what this one prints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a large table"]
async fn costs_of_a_large_table_to_those_of_a_small_one() {
    let [large, files] = LARGE.map(|name| std::env::var(name).unwrap());
    let (_metadata, schema) = fresh();
    let small = Table::filled(&schema, 10_000).await;
    let large = Table::of(&schema.options().with_schema(large), files.parse().unwrap()).await;
    let cases = cases();
    for table in [&small, &large] {
        table.prepare(&cases).await;
    }

    for (at, case) in cases.iter().enumerate() {
        // In turns, so that both meet the same machine. What the disk costs is not compared: a small table is in
        // memory, and a large one is as far as there is some.
        let (mut ones, mut manies) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            ones.push(small.warm_cost(at, case).await);
            manies.push(large.warm_cost(at, case).await);
        }
        let (one, many) = (median(ones), median(manies));
        println!(
            "{:<42} {:>5} rows  {:.3} ms to {:.3} ms: {:.2}",
            case.name,
            many.rows,
            many.millis,
            one.millis,
            many.millis / one.millis
        );
        assert!(many.rows <= case.most, "{}: {} rows", case.name, many.rows);
        // One more pair: the file with which the large store's place got its marker.
        assert!((many.found - one.found).abs() <= 1.0, "{}: not the same work", case.name);
    }
}

//! The log of events beside the records: each change that is there has its event, and each event its change.
//!
//! Records are compared with what was acknowledged elsewhere. So an acknowledged change without an event would
//! show here.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::tally::Kind;
use crate::verify::Findings;

/// A statement that finds no row in a good database.
struct Rule {
    says: &'static str,
    broken_by: &'static str,
}

/// The rules. The view `told` has the files whose whole life is in the log: uploaded after the oldest event that is
/// kept, and not put back from a snapshot.
const RULES: [Rule; 5] = [
    Rule {
        says: "a file has the event of its upload",
        broken_by: "SELECT file_id FROM told WHERE NOT EXISTS (SELECT 1 FROM events
             WHERE events.file_id = told.file_id AND kind = 'file.uploaded')",
    },
    Rule {
        says: "each replacement has one event",
        broken_by: "SELECT file_id FROM told WHERE version <> 1 + (SELECT count(*) FROM events
             WHERE events.file_id = told.file_id AND kind = 'file.replaced')",
    },
    Rule {
        says: "deletions and restores alternate, up to the state of the file",
        broken_by: "SELECT file_id FROM told WHERE deleted_by IS NOT 'erasure'
             AND (purge_status IS NOT NULL) <> (SELECT
             coalesce(sum(kind IN ('file.deleted', 'file.expired')), 0) - coalesce(sum(kind = 'file.restored'), 0)
             FROM events WHERE events.file_id = told.file_id)",
    },
    Rule {
        says: "an event tells of a file that is there, was purged, or was erased",
        broken_by: "SELECT file_id FROM events WHERE file_id IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM files WHERE files.file_id = events.file_id)
             AND organization_id NOT IN (SELECT organization_id FROM erasures)
             GROUP BY file_id HAVING max(position) IS NOT max(CASE kind WHEN 'file.purged' THEN position END)",
    },
    Rule {
        says: "the events of a file have the order of its changes",
        broken_by: "SELECT earlier.file_id FROM events AS earlier JOIN events AS later USING (file_id)
             WHERE earlier.position < later.position
             AND (earlier.version > later.version OR later.kind = 'file.uploaded')",
    },
];

/// Compares the log with the records of a data directory.
pub(crate) fn check(data_dir: &Path, findings: &mut Findings) {
    let path = data_dir.join("metadata.sqlite3");
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let mut database = opened.expect("a database");
    // One snapshot, as a server may be at work.
    let snapshot = database.transaction().expect("a snapshot");
    let told = "CREATE TEMP VIEW told AS SELECT * FROM files
         WHERE created_at > (SELECT min(at) FROM events) AND NOT EXISTS (SELECT 1 FROM events
         WHERE events.file_id = files.file_id AND kind = 'file.put_back')";
    snapshot.execute_batch(told).expect("a view");
    for Rule { says, broken_by } in RULES {
        let mut statement = snapshot.prepare(broken_by).expect("the tables are there");
        let broken = statement.query_map((), |row| row.get(0)).expect("rows can be read");
        let broken: Vec<String> = broken.map(|row| row.expect("a row")).collect();
        findings
            .expect(broken.is_empty(), Kind::Untold, || format!("{says}: not so of {broken:?}"));
    }
}

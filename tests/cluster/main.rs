//! Three servers behind nginx, as processes, under load: servers are killed and stopped, and the database is
//! killed, while an oracle keeps what was acknowledged. `tests/services/cluster/run` runs it.
//!
//! What may fail meanwhile, and how: a connection that breaks, nginx's 502 and 504, the servers' 503, and 409 for a
//! retry whose first try still runs. All of it is tried again; nothing that was acknowledged is lost or changed.

mod oracle;
mod parts;

use std::time::Duration;

use filestore_core::FileStore;
use filestore_core::admin::{FsckOptions, NoProgress};
use filestore_server::Server;
use rustix::process::Signal;

use crate::oracle::{Load, Oracle};
use crate::parts::{Backend, Environment, Nginx, database};

/// Acknowledged uploads that show that the service goes on.
const GOES_ON: usize = 15;

#[tokio::test]
#[ignore = "a process that the other test starts"]
async fn serves() {
    let Some(config) = Environment::read() else { return };
    let _server = Server::start(config).await.expect("the server starts");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_while_parts_are_killed_and_come_back() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut servers: Vec<_> = (0..3).map(|number| Backend::new(home.path(), number)).collect();
    for server in &mut servers {
        server.start();
        server.is_ready().await;
    }
    let nginx = Nginx::before(home.path(), &servers);
    let oracle = Oracle::default();
    let load = Load::start(&nginx.url, &oracle, 4);
    oracle.goes_on(GOES_ON).await;

    for round in 0..3 {
        // Its leases, notes and entries are the others' to end.
        servers[round].kill();
        oracle.goes_on(GOES_ON).await;
        servers[round].start();
        servers[round].is_ready().await;

        let sleeper = &servers[(round + 1) % 3];
        sleeper.signal(Signal::STOP);
        oracle.goes_on_for(Environment::SERVER_TIMEOUT * 2, GOES_ON).await;
        sleeper.signal(Signal::CONT);
        sleeper.is_ready().await;

        database("kill");
        database("start");
        for server in &servers {
            server.is_ready().await;
        }
        oracle.goes_on(GOES_ON).await;
    }

    let summary = load.stop().await;
    println!("{summary}");
    oracle.check(&nginx.url).await;
    for server in &mut servers {
        oracle.check(&server.url()).await;
        server.kill();
    }

    let config = Environment::config(home.path(), "checker");
    let builder = FileStore::builder(home.path().join("checker")).config(config.store);
    let store = builder.open().await.expect("the store opens");
    let report = store.admin().fsck(FsckOptions::default(), &|| false, &NoProgress).await;
    let report = report.expect("the check comes to its end");
    assert_eq!(report.findings, []);
    assert!(report.checked_files >= oracle.acknowledged());
    store.close().await;
}

/// The longest wait for anything.
const LONG: Duration = Duration::from_mins(2);

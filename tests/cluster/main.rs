//! Three servers behind nginx, on PostgreSQL and three nodes of Garage, as processes, under load: each part is
//! killed or stopped and comes back, while an oracle keeps what was acknowledged. `tests/services/cluster/run` runs it.
//!
//! These may fail meanwhile: 502 and 503 with `Retry-After`, those of nginx too, as the shipped
//! configuration writes them; 409 for a retry whose first try still runs; a connection that
//! breaks, or that a client gives up. All of it is tried again; nothing that was acknowledged is lost
//! or changed, and nobody does anything but start what was killed. Servers take snapshots meanwhile; then one dies
//! at each step of a snapshot, and in the end all that was acknowledged is restored. Readers of the log and a webhook
//! are told of each change, and of nothing else.

mod garage;
mod load;
mod nginx;
mod oracle;
mod parts;
mod sessions;
mod snapshots;
mod told;

use filestore_core::FileStore;
use filestore_core::admin::{FsckOptions, NoProgress};
use filestore_server::Server;
use rustix::process::Signal;

use crate::garage::Node;
use crate::load::Load;
use crate::nginx::Nginx;
use crate::oracle::Oracle;
use crate::parts::{Backend, Environment, database};
use crate::sessions::Sessions;
use crate::snapshots::{Moment, Snapshots, come_back, die_at_each_step, take_last};
use crate::told::Followers;

/// Acknowledged uploads that show that the service goes on.
const GOES_ON: usize = 15;

#[tokio::test]
#[ignore = "a process that the other test starts"]
async fn serves() {
    let Some(config) = Environment::read() else { return };
    Environment::arm();
    let _server = Server::start(config).await.expect("the server starts");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_while_parts_are_killed_and_come_back() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let nodes = Node::all();
    let mut servers: Vec<_> = (0..3).map(|number| Backend::new(home.path(), number)).collect();
    let nginx = Nginx::between(home.path(), &servers, &nodes);
    for server in &mut servers {
        server.start(&nginx.objects);
        server.is_ready().await;
    }

    let sessions = Sessions::watch();
    let oracle = Oracle::default();
    let followers = Followers::start(&nginx.url, &servers[0].url()).await;
    let load = Load::start(&nginx.url, &oracle, 4);
    let snapshots = Snapshots::start(&servers);
    oracle.goes_on(GOES_ON).await;

    for round in 0..3 {
        // Its leases, notes and entries are the others' to end.
        servers[round].kill();
        oracle.goes_on(GOES_ON).await;
        servers[round].start(&nginx.objects);
        servers[round].is_ready().await;

        let sleeper = &servers[(round + 1) % 3];
        sleeper.signal(Signal::STOP);
        oracle.goes_on_for(Environment::SERVER_TIMEOUT * 2, GOES_ON).await;
        sleeper.signal(Signal::CONT);
        sleeper.is_ready().await;

        nodes[round].end(round);
        oracle.goes_on(GOES_ON).await;
        nodes[round].start();
        Node::are_joined(&nodes).await;

        database(if round == 0 { "stop" } else { "kill" });
        database("start");
        for server in &servers {
            server.is_ready().await;
        }
        oracle.goes_on(GOES_ON).await;
    }

    println!("{}", snapshots.end().await);
    println!("{} files are known; a server dies at each step of a snapshot", oracle.all().len());
    load.slow_down();
    die_at_each_step(&mut servers, &nginx.objects).await;
    let moment = Moment::take(&servers[1], &oracle).await;
    oracle.goes_on(GOES_ON).await;

    let summary = load.stop().await;
    println!("{summary}");
    println!("{}", followers.end(&nginx.url, &oracle).await);
    println!("{}", sessions.end().await);
    oracle.check(&nginx.url).await;
    take_last(&servers[2]).await;
    for server in &mut servers {
        oracle.check(&server.url()).await;
        server.kill();
    }
    check_the_whole(home.path(), &nginx.objects, &oracle).await;
    come_back(home.path(), &nginx.objects, &oracle, moment).await;
}

/// Compares all records with all objects.
async fn check_the_whole(home: &std::path::Path, objects: &str, oracle: &Oracle) {
    let config = Environment::config(home, "checker", objects);
    let builder = FileStore::builder(home.join("checker")).config(config.store);
    let store = builder.open().await.expect("the store opens");
    let report = store.admin().fsck(FsckOptions::default(), &|| false, &NoProgress).await;
    let report = report.expect("the check comes to its end");
    assert_eq!(report.findings, []);
    assert!(report.checked_files >= oracle.acknowledged());
    store.close().await;
}

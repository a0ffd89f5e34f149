//! Organizations that must not notice what happens to another one.
//!
//! A fault test has a [`Neighbour`] beside the organization that it is about: one organization whose
//! files are LOCAL, one that writes through to a sound provider of its own, and one whose files follow
//! there in the background. All of them go on working, turn by turn, whatever the fault.

use filestore_core::config::ProviderConfig;
use futures_util::future::{Either, select};
use reqwest::Method;

use crate::fixtures::noise;
use crate::{Remote, S3Server, TestServer, eventually};

/// The organization whose files are LOCAL.
const LOCAL: &str = "900";
/// The organization whose uploads are at the sound provider before the reply.
const WRITTEN_THROUGH: &str = "901";
/// The organization whose uploads follow to the sound provider.
const SYNCED: &str = "902";

/// Bytes of a file that goes to the provider in parts.
const LARGE: usize = 6 << 20;

/// The organizations beside the one that meets a fault.
pub struct Neighbour {
    remote: Remote,
    s3: S3Server,
}

impl Neighbour {
    /// Starts the sound provider.
    pub async fn start() -> Self {
        let s3 = S3Server::start().await;
        Self { remote: Remote::at(&s3), s3 }
    }

    /// The configuration of the sound provider, for the server that the neighbour moves into.
    pub fn provider(&self) -> ProviderConfig {
        self.remote.config.clone()
    }

    /// The sound provider itself.
    pub fn s3(&self) -> &S3Server {
        &self.s3
    }

    /// Binds the organizations, and sees that they work while nothing is wrong.
    pub async fn move_in(&self, server: &TestServer) {
        server.bind(901, self.remote.code(), false).await;
        server.bind(902, self.remote.code(), true).await;
        self.takes_a_turn(server).await;
    }

    /// Lets each organization upload, read, and delete a file; the one that is synced waits until its
    /// file has arrived. Every answer must be the one of a service without faults.
    pub async fn takes_a_turn(&self, server: &TestServer) {
        let turns = async {
            futures_util::join!(
                whole_life(server, LOCAL, "LOCAL", b"small".to_vec()),
                whole_life(server, WRITTEN_THROUGH, "CLOUD", b"small".to_vec()),
                whole_life(server, WRITTEN_THROUGH, "CLOUD", noise(1, LARGE)),
                self.follows(server),
            )
        };
        // On the heap: every test of a fault would hold these large futures in its own.
        Box::pin(turns).await;
    }

    /// Takes turns until `fault` is over, and at least one. Returns what `fault` returns, and the number
    /// of turns.
    pub async fn beside<T>(
        &self,
        server: &TestServer,
        fault: impl Future<Output = T>,
    ) -> (T, usize) {
        let mut fault = Box::pin(fault);
        for turns in 1.. {
            let turn = Box::pin(self.takes_a_turn(server));
            match select(turn, fault).await {
                Either::Left(((), still)) => fault = still,
                Either::Right((value, turn)) => {
                    turn.await;
                    return (value, turns);
                }
            }
        }
        unreachable!("the numbers do not end")
    }

    async fn follows(&self, server: &TestServer) {
        let record = server.upload("follows").org(SYNCED).ok().await;
        eventually("the neighbour's file is at its provider", async || {
            (server.record(&record.file_id).await.sync_status == "SYNCED").then_some(())
        })
        .await;
        server.delete(&record.file_id).await.expect(200);
    }
}

async fn whole_life(server: &TestServer, organization: &str, location: &str, bytes: Vec<u8>) {
    let record = server.upload(&bytes).org(organization).ok().await;
    assert_eq!(record.storage_location, location, "organization {organization}");

    let reply = server.content(&record.file_id).send().await;
    let read = match reply.status {
        302 => crate::Call::bare(Method::GET, reply.only("location")).send().await.expect(200),
        _ => reply.expect(200),
    };
    assert!(read.body == bytes, "organization {organization} reads what it wrote");

    server.delete(&record.file_id).await.expect(200);
    server.content(&record.file_id).send().await.expect(404);
}

impl std::fmt::Debug for Neighbour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Neighbour").field("provider", &self.remote.code()).finish_non_exhaustive()
    }
}

//! What readiness, the list of providers and the status say of a provider that fails.

use filestore_client::api::BreakerState;
use filestore_workspace::{Neighbour, Remote, S3Server, eventually};

use crate::suite::serve_with;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_down_is_shown_and_makes_nothing_unready() {
    let s3 = S3Server::start().await;
    let (mut remote, neighbour) = (Remote::at(&s3), Neighbour::start().await);
    remote.config.retries = 0;
    let server = serve_with(&[&remote], |config| {
        config.store.providers.push(neighbour.provider());
    })
    .await;
    server.bind(7, remote.code(), true).await;
    neighbour.move_in(&server).await;
    let admin = server.client();
    let advised = async || {
        let status = admin.admin().status().await.unwrap();
        status.advice.into_iter().find(|advice| advice.about == remote.code())
    };
    assert_eq!(advised().await, None);

    s3.down().await;
    server.upload("waits").org("7").ok().await;
    let shown = async || {
        let all = admin.admin().providers().list().await.unwrap();
        all.into_iter().find(|one| one.provider_code == remote.code()).expect("it is listed")
    };
    let down = eventually("the breaker opens", async || {
        let one = shown().await;
        // A file that is being tried again does not wait at that moment.
        (one.state == Some(BreakerState::Open) && one.backlog.sync == 1).then_some(one)
    })
    .await;
    let error = down.last_error.expect("the reason");
    assert!(!error.is_empty() && !error.contains(s3.secret_key()), "{error}");
    assert!(down.backlog.oldest_secs.is_some() && down.last_error_at.is_some());

    let ready = admin.ready().await.expect("others are served");
    let own = ready.providers.iter().find(|one| one.provider_code == remote.code()).unwrap();
    assert_ne!(own.state, Some(BreakerState::Closed));
    assert!(own.last_error.is_some());

    let advice = advised().await.expect("something to do");
    assert!(advice.next.contains("filestore provider check"), "{advice:?}");
    neighbour.takes_a_turn(&server).await;

    s3.up().await;
    filestore_workspace::eventually("all is well again", async || {
        let sync = admin.admin().status().await.unwrap().sync;
        (advised().await.is_none() && sync.pending + sync.syncing == 0).then_some(())
    })
    .await;
}

//! One test for each fault that was found in the deliveries.

use super::*;

/// Waits until each of these events was received at least twice.
async fn until_repeated(endpoint: &Endpoint, ids: &[String]) {
    let count = |received: &[Received], id: &String| {
        received.iter().filter(|one| one.id() == id.as_str()).count()
    };
    endpoint.until(|received| ids.iter().all(|id| count(received, id) >= 2)).await;
}

#[tokio::test]
async fn enabling_from_an_earlier_place_counts_although_a_lane_runs() {
    let mut bench = Bench::new().await;
    let endpoint = Endpoint::accepting().await;
    let webhook = bench.webhook(&endpoint.url()).await;
    bench.uploads(3).await;
    bench.start();
    let sent = ids(&endpoint.until_count(3).await);

    bench.store.webhooks().enable(webhook.id, Some(After::Start)).await.unwrap();
    until_repeated(&endpoint, &sent).await;
    bench.stop().await;
}

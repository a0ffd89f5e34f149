//! Follows the log for all readers.

use std::sync::Arc;
use std::time::Duration;

use filestore_core::events::{After, EventFilter, EventKind};
use filestore_core::{Error, ErrorKind, FileStore, Result, Scope};
use tokio::time::sleep;

use super::newest::Newest;

/// The pause between two announcements. Events that are committed in between share the next one.
const BETWEEN_ANNOUNCEMENTS: Duration = Duration::from_millis(50);

/// The longest wait for an event, before the follower asks again.
const WAIT: Duration = Duration::from_secs(30);

/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The number of events in a page.
const PAGE: usize = 1000;

/// Follows the log from its end for ever. If the log is another one, or is switched off, `lost` ends the readers:
/// they connect again, and learn from the status what happened.
pub(super) async fn follow(store: FileStore, newest: Arc<Newest>, lost: impl Fn() + Send + Sync) {
    let mut place = None;
    loop {
        let Err(error) = go_on(&store, &newest, &mut place).await;
        tracing::debug!(error = %error.chain(), "the log of events cannot be followed, trying again");
        if is_lost(&error) {
            place = None;
            lost();
        }
        sleep(AFTER_FAILURE).await;
    }
}

/// Follows the log from `place`, or from its end, until a call fails.
async fn go_on(
    store: &FileStore,
    newest: &Newest,
    place: &mut Option<After>,
) -> Result<std::convert::Infallible> {
    let all = EventFilter::new();
    let log = store.events(&Scope::All);
    loop {
        let Some(after) = *place else {
            let end = log.page(&all, After::End, 1).await?;
            newest.begin(end.looked_at);
            *place = Some(end.next);
            continue;
        };
        let page = log.wait(&all, after, PAGE, WAIT).await?;
        *place = Some(page.next);
        if page.events.iter().any(|event| event.kind == EventKind::OrganizationErased) {
            // Readers go back to the log, which no longer tells of the organization's files.
            newest.begin(page.looked_at);
        } else if !page.events.is_empty() {
            newest.add(page.events.into_iter().map(|event| (log.position(&event), event)));
            sleep(BETWEEN_ANNOUNCEMENTS).await;
        }
    }
}

fn is_lost(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::EventsGone | ErrorKind::EventsOff)
}

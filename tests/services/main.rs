//! CLOUD providers that are servers of their own: Garage and Azurite. `tests/services/run` installs and
//! starts them, and says in the environment where they are.

#[path = "../cloud/suite/mod.rs"]
mod suite;
mod outage;

use filestore_workspace::Remote;

fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run these tests by tests/services/run"))
}

mod garage {
    use tokio::sync::{RwLock, RwLockReadGuard};

    use super::{Remote, variable};

    /// Shared by the tests that need all nodes; the test that kills some has it alone.
    pub(crate) static CLUSTER: RwLock<()> = RwLock::const_new(());

    fn remote() -> Remote {
        Remote::s3(
            &variable("FILESTORE_TEST_GARAGE_ENDPOINT"),
            &variable("FILESTORE_TEST_GARAGE_REGION"),
            &variable("FILESTORE_TEST_GARAGE_BUCKET"),
            &variable("FILESTORE_TEST_GARAGE_KEY_ID"),
            &variable("FILESTORE_TEST_GARAGE_SECRET"),
        )
    }

    async fn garage() -> (Remote, Remote, RwLockReadGuard<'static, ()>) {
        (remote(), remote(), CLUSTER.read().await)
    }

    crate::provider_suite!(garage);
    crate::provider_suite!(garage: part_uploads { what_a_killed_process_left_is_aborted_after_a_day, });
}

mod azurite {
    use super::{Remote, variable};

    fn remote() -> Remote {
        Remote::azblob(
            &variable("FILESTORE_TEST_AZURITE_ENDPOINT"),
            &variable("FILESTORE_TEST_AZURITE_CONTAINER"),
            &variable("FILESTORE_TEST_AZURITE_ACCOUNT"),
            &variable("FILESTORE_TEST_AZURITE_KEY"),
        )
    }

    #[expect(clippy::unused_async, reason = "the suite awaits it")]
    async fn azurite() -> (Remote, Remote, ()) {
        (remote(), remote(), ())
    }

    crate::provider_suite!(azurite);
}

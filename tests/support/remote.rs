//! A place at a provider, of one test alone.

use std::collections::BTreeMap;
use std::time::Duration;

use filestore_core::ProviderCode;
use filestore_core::config::{OptionValue, ProviderConfig};
use futures_util::TryStreamExt;
#[cfg(feature = "azblob")]
use opendal::services::Azblob;
use opendal::services::S3;
use opendal::{Entry, Operator};
use serde_json::json;

use crate::{S3Server, TestServer, eventually};

/// A provider with a root of its own, seen from both sides: as the service is configured with it, and
/// through a client that knows nothing of the service.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The configuration of the provider, as a server takes it.
    pub config: ProviderConfig,
    operator: Operator,
}

impl Remote {
    /// A new root at `server`.
    pub fn at(server: &S3Server) -> Self {
        Self::s3(
            &server.endpoint(),
            server.region(),
            server.bucket(),
            server.access_key(),
            server.secret_key(),
        )
    }

    /// A new root in a bucket of any S3 server.
    pub fn s3(
        endpoint: &str,
        region: &str,
        bucket: &str,
        access_key: &str,
        secret_key: &str,
    ) -> Self {
        Self::of(
            "s3",
            &[
                ("endpoint", endpoint),
                ("region", region),
                ("bucket", bucket),
                ("access_key_id", access_key),
                ("secret_access_key", secret_key),
                ("disable_config_load", "true"),
            ],
        )
    }

    /// A new root in a container of Azure Blob Storage.
    #[cfg(feature = "azblob")]
    pub fn azblob(endpoint: &str, container: &str, account: &str, key: &str) -> Self {
        Self::of(
            "azblob",
            &[
                ("endpoint", endpoint),
                ("container", container),
                ("account_name", account),
                ("account_key", key),
            ],
        )
    }

    fn of(scheme: &str, options: &[(&str, &str)]) -> Self {
        // Without its default features OpenDAL installs no transport by itself.
        crate::http::install_crypto();
        opendal::install_default();
        opendal_http_transport_reqwest::install_default();
        // Short: the S3 server of these tests makes one file's name of a whole key.
        let random = std::iter::repeat_with(fastrand::alphanumeric).take(8).collect::<String>();
        let root = format!("/{random}");

        let mut all: BTreeMap<String, String> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        all.insert("root".to_owned(), root);
        let operator = match scheme {
            "s3" => Operator::from_iter::<S3>(all.clone()),
            #[cfg(feature = "azblob")]
            "azblob" => Operator::from_iter::<Azblob>(all.clone()),
            other => panic!("no operator for {other}"),
        };

        let code: ProviderCode = format!("{scheme}-{random}").parse().expect("a code");
        let mut config = ProviderConfig::new(code, scheme);
        for (name, value) in all {
            let value = match &*value {
                "true" => OptionValue::Boolean(true),
                _ => OptionValue::Text(value),
            };
            config = config.with_option(name, value);
        }

        Self { config, operator: operator.expect("a client") }
    }

    /// Has the service give up on a call that gets no answer, and make it twice at the most. A call that gets one has
    /// enough time for it, also on a machine that does much else.
    #[must_use]
    pub fn given_up_on_soon(mut self) -> Self {
        let timeout = Duration::from_secs(5);
        (self.config.timeout, self.config.io_timeout) = (timeout, timeout);
        self.config.retries = 1;
        self
    }

    /// Returns the provider's code.
    pub fn code(&self) -> &str {
        self.config.code.as_str()
    }

    /// The keys of all objects there, sorted; the marker of the store left out.
    pub async fn objects(&self) -> Vec<String> {
        let entries = sooner_or_later(async || self.list().await).await;
        let files = entries.iter().filter(|entry| entry.metadata().is_file());
        let files = files.filter(|entry| entry.path() != ".filestore-store");
        let mut keys: Vec<String> = files.map(|entry| entry.path().to_owned()).collect();
        keys.sort();
        keys
    }

    async fn list(&self) -> opendal::Result<Vec<Entry>> {
        self.operator.lister_with("").recursive(true).await?.try_collect().await
    }

    /// Begins to store an object in parts, and never finishes: as a process does that is killed.
    pub async fn begin_upload(&self, key: &str) {
        let part = vec![7_u8; 5 << 20];
        let mut writer = self.operator.writer_with(key).await.expect("a writer");
        // The first is sent once the second is there.
        for _ in 0..3 {
            writer.write(part.clone()).await.expect("a part that is taken");
        }
    }

    /// Removes an object, as nobody does who keeps to the rules.
    pub async fn remove(&self, key: &str) {
        sooner_or_later(async || self.operator.delete(key).await).await;
    }

    /// The media type that an object was stored with.
    pub async fn content_type(&self, key: &str) -> String {
        let found = sooner_or_later(async || self.operator.stat(key).await).await;
        found.content_type().unwrap_or_default().to_owned()
    }

    /// The bytes of an object.
    pub async fn object(&self, key: &str) -> Vec<u8> {
        sooner_or_later(async || self.operator.read(key).await).await.to_vec()
    }
}

impl TestServer {
    /// Binds organization `number` to the provider `code`, whether it was bound before or not.
    pub async fn bind(&self, number: i64, code: &str, sync: bool) {
        let binding = json!({
            "organizationId": number, "organizationName": "Acme", "storageProvider": code, "syncEnabled": sync,
        });

        let created =
            self.post("/api/v1/organization-storage-bindings/create").json(&binding).send().await;
        if created.status == 409 {
            let change = json!({
                "organizationId": number, "storageProvider": code, "syncEnabled": sync,
            });
            self.put("/api/v1/organization-storage-bindings/update")
                .json(&change)
                .send()
                .await
                .expect(200);
        } else {
            created.expect(201);
        }
    }
}

/// Asks again after what passes: the S3 server of the tests fails to list what is deleted at the same
/// moment, and a connection kept from another test may be closed.
async fn sooner_or_later<T>(ask: impl AsyncFn() -> opendal::Result<T>) -> T {
    eventually("the provider answers", async || match ask().await {
        Ok(answer) => Some(answer),
        Err(error) if error.is_temporary() => None,
        Err(error) => panic!("{error}"),
    })
    .await
}

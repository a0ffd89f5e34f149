//! One story over both targets: a server behind the typed client, and the core directly. An
//! application must see the same.

use filestore_client::{Batch, Client, Item, ListQuery, Place, Upload};
use filestore_core::admin::{NoProgress, PurgeOptions, PurgeWhen};
use filestore_core::api::{FileRecord, PurgeRunRequest, PurgeStatus};
use filestore_core::uploads::GivenName;
use filestore_core::variants::{Variant, VariantSize};
use filestore_core::{Change, FileStore, ListRequest, NewBatch, NewUpload, Scope};
use filestore_workspace::{TestServer, fixtures};

/// The operations of an application on a store, over HTTP or embedded.
trait Target {
    async fn upload_temp(&self, name: &str, bytes: &[u8]) -> FileRecord;
    async fn batch(&self, items: &[(&str, &str)]) -> Vec<FileRecord>;
    async fn info(&self, id: &str) -> Option<FileRecord>;
    async fn read(&self, id: &str) -> Option<Vec<u8>>;
    async fn make_thumbnail(&self, id: &str) -> Result<(), String>;
    async fn make_ready(&self, id: &str) -> Result<(), String>;
    async fn replace(&self, id: &str, bytes: &[u8]);
    async fn variant(&self, id: &str) -> Result<Vec<u8>, String>;
    async fn list(&self) -> Vec<String>;
    async fn delete(&self, id: &str);
    async fn restore(&self, id: &str);
    async fn purge(&self);
}

async fn story(store: impl Target) {
    let photo = fixtures::jpeg_with_exif(480, 320, 6);
    let temp = store.upload_temp("Grüße.jpg", &photo).await;
    assert_eq!((temp.status.as_str(), &*temp.mime_type, &*temp.ext), ("TEMP", "image/jpeg", "jpg"));
    assert_eq!((temp.width, temp.height), (Some(320), Some(480)), "as displayed");

    let id = &temp.file_id;
    assert_eq!(store.info(id).await.as_ref(), Some(&temp));
    assert_eq!(store.read(id).await.unwrap(), photo);

    store.make_thumbnail(id).await.unwrap();
    assert_eq!(store.info(id).await.unwrap().status, "THUMBNAIL");

    let small = image::load_from_memory(&store.variant(id).await.unwrap()).unwrap();
    assert_eq!((small.width(), small.height()), (200, 200));

    store.make_ready(id).await.unwrap();
    assert_eq!(store.info(id).await.unwrap().status, "READY");
    assert_eq!(store.make_thumbnail(id).await.unwrap_err(), "invalid_transition");

    store.replace(id, b"words instead").await;
    let replaced = store.info(id).await.unwrap();
    assert_eq!((replaced.version, &*replaced.original_name), (2, "Grüße.jpg"));
    assert_eq!(store.read(id).await.unwrap(), b"words instead");
    assert_eq!(store.variant(id).await.unwrap_err(), "not_an_image");

    let batch = store.batch(&[("one.txt", "1"), ("two.txt", "2")]).await;
    let names: Vec<&str> = batch.iter().map(|record| &*record.original_name).collect();
    assert_eq!(names, ["one.txt", "two.txt"]);

    let mut expected: Vec<String> = batch.iter().map(|record| record.file_id.clone()).collect();
    expected.push(id.clone());
    expected.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(store.list().await, expected);

    store.delete(id).await;
    assert_eq!(store.read(id).await, None);
    assert_eq!(store.info(id).await.unwrap().purge_status, Some(PurgeStatus::SystemPurge));

    store.restore(id).await;
    assert_eq!(store.read(id).await.unwrap(), b"words instead");

    store.restore(id).await;

    store.delete(id).await;
    store.purge().await;

    // The background worker may have claimed it just before.
    assert_eq!(store.info(id).await, None);
    assert_eq!(store.list().await.len(), 2);
}

/// A server, through the typed client. Its purge worker is held back until the story asks for it.
struct Remote {
    server: TestServer,
    client: Client,
}

impl Remote {
    fn place(&self) -> Place {
        self.client.organization("acme").unwrap().sub_system("gallery").unwrap()
    }
}

impl Target for Remote {
    async fn upload_temp(&self, name: &str, bytes: &[u8]) -> FileRecord {
        let upload = Upload::from_bytes(bytes.to_vec()).original_name(name).temp();
        self.place().upload(upload).await.unwrap()
    }

    async fn batch(&self, items: &[(&str, &str)]) -> Vec<FileRecord> {
        let mut batch = Batch::new();
        for (name, text) in items {
            batch = batch.item(Item::from_bytes((*text).to_owned()).original_name(*name));
        }
        self.place().batch(batch).await.unwrap()
    }

    async fn info(&self, id: &str) -> Option<FileRecord> {
        self.client.info(id).await.ok().map(|reply| reply.value)
    }

    async fn read(&self, id: &str) -> Option<Vec<u8>> {
        self.client.download(id).bytes().await.ok().map(Into::into)
    }

    async fn make_thumbnail(&self, id: &str) -> Result<(), String> {
        self.client.make_thumbnail(id).await.map(|_| ()).map_err(|error| code(&error))
    }

    async fn make_ready(&self, id: &str) -> Result<(), String> {
        let reply = self.client.make_ready(id).await.map_err(|error| code(&error))?;
        assert_eq!(reply.value.sync_status, "NONE");
        Ok(())
    }

    async fn replace(&self, id: &str, bytes: &[u8]) {
        self.client.replace(id, Item::from_bytes(bytes.to_vec())).await.unwrap();
    }

    async fn variant(&self, id: &str) -> Result<Vec<u8>, String> {
        self.client
            .variant(id, 200)
            .await
            .map(|made| made.bytes.into())
            .map_err(|error| code(&error))
    }

    async fn list(&self) -> Vec<String> {
        let page = self.client.list(&ListQuery::new().organization_id("acme")).await.unwrap();
        page.items.into_iter().map(|record| record.file_id).collect()
    }

    async fn delete(&self, id: &str) {
        let reply = self.client.delete(id).await.unwrap();
        assert!(reply.deleted && reply.purge_pending);
    }

    async fn restore(&self, id: &str) {
        self.client.restore(id).await.unwrap();
    }

    async fn purge(&self) {
        let now = PurgeRunRequest::default().now();
        assert_eq!(self.client.admin().purge().run(&now).await.unwrap().purged, 1);
        assert!(self.server.data_dir().exists());
    }
}

fn code(error: &filestore_client::Error) -> String {
    error.code().map_or("no code", |code| code.as_str()).to_owned()
}

/// The core in this process.
struct Direct {
    store: FileStore,
    _dir: tempfile::TempDir,
}

impl Target for Direct {
    async fn upload_temp(&self, name: &str, bytes: &[u8]) -> FileRecord {
        let new = NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap())
            .with_name(name)
            .temp();
        FileRecord::of(&self.store.upload(new, bytes).await.unwrap(), &self.store.config())
    }

    async fn batch(&self, items: &[(&str, &str)]) -> Vec<FileRecord> {
        let files =
            items.iter().map(|(name, text)| (GivenName::named(*name), (*text).to_owned().into()));
        let batch = NewBatch::new("acme".parse().unwrap(), "gallery".parse().unwrap());
        let records = self.store.batch(batch, files).await.unwrap();
        let config = self.store.config();
        records.iter().map(|record| FileRecord::of(record, &config)).collect()
    }

    async fn info(&self, id: &str) -> Option<FileRecord> {
        let record = self.store.scoped(&Scope::All).info(id.parse().unwrap()).await.ok()?;
        Some(FileRecord::of(&record, &self.store.config()))
    }

    async fn read(&self, id: &str) -> Option<Vec<u8>> {
        self.store.scoped(&Scope::All).read(id.parse().unwrap()).await.ok().map(Into::into)
    }

    async fn make_thumbnail(&self, id: &str) -> Result<(), String> {
        self.change(id, Change::MakeThumbnail).await
    }

    async fn make_ready(&self, id: &str) -> Result<(), String> {
        self.change(id, Change::MakeReady).await
    }

    async fn replace(&self, id: &str, bytes: &[u8]) {
        self.store.scoped(&Scope::All).replace(id.parse().unwrap(), bytes).await.unwrap();
    }

    async fn variant(&self, id: &str) -> Result<Vec<u8>, String> {
        let size = VariantSize::from_path("200", "200").unwrap();
        let id = id.parse().unwrap();
        let files = self.store.scoped(&Scope::All);
        let made = files.variant(id, size).fit(filestore_core::Fit::Cover).await;
        match made.map_err(|error| error.kind().code().to_owned())?.1 {
            Variant::WebP(bytes) => Ok(bytes.into()),
            Variant::PassThrough { .. } => Ok(files.read(id).await.unwrap().into()),
        }
    }

    async fn list(&self) -> Vec<String> {
        let mut request = ListRequest::default();
        request.filter.organization_id = Some("acme".parse().unwrap());
        let page = self.store.scoped(&Scope::All).list(&request).await.unwrap();
        page.items.iter().map(|record| record.file_id.to_string()).collect()
    }

    async fn delete(&self, id: &str) {
        self.store.scoped(&Scope::All).delete(id.parse().unwrap()).await.unwrap();
    }

    async fn restore(&self, id: &str) {
        self.store.scoped(&Scope::All).restore(id.parse().unwrap()).await.unwrap();
    }

    async fn purge(&self) {
        let mut options = PurgeOptions::default();
        options.when = PurgeWhen::Now;
        let report = self.store.admin().purge_with(&options, &|| false, &NoProgress).await;
        assert_eq!(report.unwrap().purged, 1);
    }
}

impl Direct {
    async fn change(&self, id: &str, change: Change) -> Result<(), String> {
        let changed =
            self.store.scoped(&Scope::All).change(id.parse().unwrap(), change, None).await;
        changed.map(|_| ()).map_err(|error| error.kind().code().to_owned())
    }
}

#[tokio::test]
async fn an_application_sees_the_same_through_the_client() {
    let server = TestServer::start_without_purge().await;
    let client = server.client();
    story(Remote { server, client }).await;
}

#[tokio::test]
async fn an_application_sees_the_same_with_the_core_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).await.unwrap();
    story(Direct { store, _dir: dir }).await;
}

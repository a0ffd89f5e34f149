//! One store for many customers, each behind a handle that reaches only their own files.
//!
//! `cargo run -p filestore-core --example tenant`

use filestore_core::{
    Error, ErrorKind, FileId, FileStore, FileStoreBuilder, Files, ListRequest, NewUpload,
    OrganizationId, Scope,
};

type Result<T, E = Error> = std::result::Result<T, E>;

/// The files of one customer. Code with this handle cannot name the files of another one.
#[derive(Clone)]
struct Customer {
    store: FileStore,
    id: OrganizationId,
    scope: Scope,
}

impl Customer {
    /// Makes the handle, for example from the session of a request.
    fn of(store: &FileStore, id: &str) -> Result<Self> {
        let id: OrganizationId = id.parse()?;
        let scope = Scope::Organizations(vec![id.clone()]);
        Ok(Self { store: store.clone(), id, scope })
    }

    fn files(&self) -> Files<'_> {
        self.store.scoped(&self.scope)
    }

    async fn upload(&self, name: &str, bytes: &[u8]) -> Result<FileId> {
        let new = NewUpload::new(self.id.clone(), "documents".parse()?).with_name(name);
        Ok(self.store.upload(new, bytes).await?.file_id)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // A customer can store 1 MB.
    let store = FileStoreBuilder::temporary().quota_bytes(1_000_000).open().await?;
    let (anna, bob) = (Customer::of(&store, "anna")?, Customer::of(&store, "bob")?);

    let id = anna.upload("plan.txt", b"the plan").await?;
    println!("anna reads {:?}", anna.files().read(id).await?);

    // A file of another customer looks like one that never was, so that nobody learns what exists.
    let foreign = bob.files().read(id).await.unwrap_err();
    let unknown = bob.files().read("01JD0000000000000000000000".parse()?).await.unwrap_err();
    println!("bob gets {:?}: {foreign}", foreign.kind());
    assert_eq!(foreign.to_string(), unknown.to_string());
    assert!(bob.files().delete(id).await.is_err());
    assert_eq!(bob.files().list(&ListRequest::default()).await?.items.len(), 0);

    let large = vec![0; 1_000_001];
    let refused = anna.upload("large.bin", &large).await.unwrap_err();
    println!("anna is over her quota: {refused}");
    assert_eq!(refused.kind(), ErrorKind::QuotaExceeded);
    bob.upload("large.bin", &large[..1_000_000]).await?;
    println!("bob has room of his own: {:?}", bob.files().usage(&bob.id).await?);
    Ok(())
}

//! One picture of each person: set, replaced, and shown in two sizes.
//!
//! `cargo run -p filestore-core --example avatar`
//!
//! A person has one file for life, found by custom metadata. So the URL of the picture never changes, and the digest in
//! its entity tag tells browsers when to load the picture again.

use std::io::Cursor;

use bytes::Bytes;
use filestore_core::uploads::ReplacementClaims;
use filestore_core::{
    Error, ErrorKind, FilePolicy, FileRecord, FileStore, ListFilter, ListRequest, NewUpload,
    OrganizationId, Replacement, Scope,
};
use image::{ImageFormat, Rgb, RgbImage};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The pictures of the people of one customer.
struct Avatars {
    store: FileStore,
    customer: OrganizationId,
    scope: Scope,
}

impl Avatars {
    fn of(store: FileStore, customer: OrganizationId) -> Self {
        let scope = Scope::Organizations(vec![customer.clone()]);
        Self { store, customer, scope }
    }

    /// Finds the picture of a person.
    async fn find(&self, person: &str) -> Result<Option<FileRecord>, Error> {
        let filter = ListFilter::new().sub_system("avatars".parse()?).metadata("person", person);
        let page = self.store.scoped(&self.scope).list(&ListRequest::new(filter)).await?;
        Ok(page.items.into_iter().next())
    }

    /// Sets the picture of a person. Bytes that are no picture leave the old one in place.
    async fn set(&self, person: &str, picture: Bytes) -> Result<FileRecord, Error> {
        let policy = FilePolicy::new().max_bytes(5_000_000).types(["image/png", "image/jpeg"]);
        let Some(old) = self.find(person).await? else {
            let new = NewUpload::new(self.customer.clone(), "avatars".parse()?)
                .with_name(format!("{person}.png"))
                .with_metadata(format!(r#"{{"person": "{person}"}}"#).parse()?)
                .with_policy(policy);
            return self.store.upload(new, &picture[..]).await;
        };

        let claims = ReplacementClaims::new(old.file_id);
        let mut session = self.store.uploads().begin_replacement(claims, &self.scope).await?;
        session.write(picture).await?;
        let new = Replacement::new().with_policy(policy);
        Ok(FileRecord::clone(&session.commit_replacement(new, &self.scope).await?.record))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let avatars = Avatars::of(FileStore::temporary().await?, "42".parse()?);

    let first = avatars.set("anna", painted([200, 30, 30])?).await?;
    println!("anna has {}", first.file_id);

    let second = avatars.set("anna", painted([30, 30, 200])?).await?;
    println!("version {} has the same id, and another digest", second.version);
    assert_eq!(first.file_id, second.file_id);
    assert_ne!(first.blob.sha256, second.blob.sha256);

    let files = avatars.store.scoped(&avatars.scope);
    for size in [200, 400] {
        let (_, variant) = files.variant(second.file_id, size).await?;
        println!("at {size} pixels: {variant:?}");
    }

    let refused = avatars.set("anna", Bytes::from("<html>no picture</html>")).await.unwrap_err();
    println!("refused: {refused}");
    assert_eq!(refused.kind(), ErrorKind::InvalidField);
    let kept = avatars.find("anna").await?.ok_or("anna has no picture")?;
    assert_eq!(kept.blob.sha256, second.blob.sha256, "the old picture stays");
    Ok(())
}

/// Paints a picture of one color.
fn painted(color: [u8; 3]) -> Result<Bytes> {
    let mut png = Cursor::new(Vec::new());
    RgbImage::from_pixel(640, 480, Rgb(color)).write_to(&mut png, ImageFormat::Png)?;
    Ok(png.into_inner().into())
}

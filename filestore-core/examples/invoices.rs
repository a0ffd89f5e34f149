//! Invoices: PDF only, private, shared by a link for ten minutes, kept for seven years.
//!
//! `cargo run -p filestore-core --example invoices`

use std::time::Duration;

use filestore_core::signing::{SignFile, SignedMethod};
use filestore_core::{
    ErrorKind, FileId, FilePolicy, FileStore, FileStoreBuilder, Files, ListFilter, ListRequest,
    ManualClock, NewUpload, Scope, Timestamp,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const DAY: Duration = Duration::from_hours(24);

/// Seven years with their leap days.
const KEPT: Duration = DAY.saturating_mul(7 * 365 + 2);

/// Stores an invoice. A file that is no PDF is refused, whatever its name says.
async fn store_invoice(store: &FileStore, number: &str, pdf: &[u8]) -> Result<FileId> {
    let new = NewUpload::new("42".parse()?, "invoices".parse()?)
        .with_name(format!("{number}.pdf"))
        .with_metadata(format!(r#"{{"number": "{number}"}}"#).parse()?)
        .with_policy(FilePolicy::new().types(["application/pdf"]));
    Ok(store.upload(new, pdf).await?.file_id)
}

/// Deletes the invoices that were stored seven years ago. Nothing else of the application deletes an invoice.
async fn delete_old(files: Files<'_>, now: Timestamp) -> Result<usize> {
    let invoices = ListFilter::new().sub_system("invoices".parse()?);
    let filter = invoices.created_before(now.minus(KEPT));
    let page = files.list(&ListRequest::new(filter).limit(1000)).await?;

    let old: Vec<FileId> = page.items.iter().map(|record| record.file_id).collect();
    let deleted = files.delete_many(&old).await;
    Ok(deleted.iter().filter(|outcome| outcome.is_ok()).count())
}

#[tokio::main]
async fn main() -> Result<()> {
    // A clock that the example moves on. Yours is that of the system.
    let clock = ManualClock::at(Timestamp::now());
    let store = FileStoreBuilder::temporary().clock(clock.clock()).open().await?;
    let scope = Scope::Organizations(vec!["42".parse()?]);
    let files = store.scoped(&scope);

    let id = store_invoice(&store, "2026-117", b"%PDF-1.7\n%invoice\n").await?;
    let refused = store_invoice(&store, "2026-118", b"<html></html>").await.unwrap_err();
    println!("stored {id}, and refused another: {refused}");

    // Your route `/api/v1/files/{id}` verifies the link, and then answers with `web::respond`.
    let link = files.sign(id, &SignFile::content().expires_in(Duration::from_mins(10))).await?;
    let (path, query) = link.path_and_query.split_once('?').ok_or("a link has a query")?;
    let rights = store.signing().verify(SignedMethod::Get, path, query)?;
    println!("the link {path} is good: {}", rights.is_some());

    clock.advance(Duration::from_hours(1));
    let expired = store.signing().verify(SignedMethod::Get, path, query).unwrap_err();
    println!("an hour later: {expired}");
    assert_eq!(expired.kind(), ErrorKind::SignatureExpired);

    clock.advance(KEPT.saturating_sub(2 * DAY));
    assert_eq!(delete_old(files, store.now()).await?, 0, "it is kept until the last day");
    clock.advance(3 * DAY);
    println!("after seven years, {} invoice is deleted", delete_old(files, store.now()).await?);
    assert!(files.record(id).await.is_err());
    Ok(())
}

//! The spans of a store's work, for traces.
//!
//! A span is a child of the caller's current span. An application that collects traces opens a span for its request,
//! for example with the parent that the header `traceparent` names, and finds the work of the store below. Attribute
//! names are those of the semantic conventions of OpenTelemetry. Names of our own begin with `filestore.`.
//!
//! All spans have the level DEBUG and the target [`TARGET`], so that a log at the level INFO does not change. A
//! failed span has `error.type` (the [code](crate::ErrorKind::code)) and `otel.status_code`.

use std::pin::Pin;

use tracing::field::Empty;
use tracing::{Instrument as _, Span, debug_span};

use crate::domain::config::{MetadataPlace, StoreConfig};
use crate::domain::error::Result;
use crate::domain::file::record::FileRecord;
use crate::domain::provider::ProviderCode;
use crate::variant::VariantKey;

/// The target of all spans.
pub(crate) const TARGET: &str = "filestore_core::span";

/// From the first claim or byte of an upload to the end of its commit.
pub(in crate::service) fn upload() -> Span {
    debug_span!(
        target: TARGET,
        "upload",
        otel.name = "filestore upload",
        filestore.organization.id = Empty,
        file.size = Empty,
        filestore.file.id = Empty,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

/// The commit of an upload or a replacement, below its upload.
pub(in crate::service) fn commit(upload: &Span, config: &StoreConfig) -> Span {
    let system = match config.metadata {
        MetadataPlace::Sqlite => "sqlite",
        MetadataPlace::Postgres(_) => "postgresql",
    };
    debug_span!(
        target: TARGET,
        parent: upload,
        "commit",
        otel.name = "filestore commit",
        db.system.name = system,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

/// The copy of one file to a provider.
pub(crate) fn sync(record: &FileRecord, target: &ProviderCode) -> Span {
    debug_span!(
        target: TARGET,
        "sync",
        otel.name = "filestore sync",
        filestore.file.id = %record.file_id,
        filestore.organization.id = %record.organization_id,
        filestore.provider = %target,
        file.size = record.blob.size_bytes,
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

/// A gallery variant that is not in memory.
pub(in crate::service) fn variant(key: &VariantKey) -> Span {
    debug_span!(
        target: TARGET,
        "variant",
        otel.name = "filestore variant",
        filestore.file.id = %key.file_id,
        filestore.organization.id = %key.organization_id,
        filestore.variant.size = key.size.pixels(),
        "error.type" = Empty,
        otel.status_code = Empty,
    )
}

/// Does the work within a span, and notes its failure. The work is boxed, because the future of a commit is large, and
/// each function that holds it needs as much of the stack.
pub(crate) async fn within<T, F>(span: Span, work: Pin<Box<F>>) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let outcome = work.instrument(span.clone()).await;
    note(&span, &outcome);
    outcome
}

/// Notes the failure of work.
pub(crate) fn note<T>(span: &Span, outcome: &Result<T>) {
    if let Err(error) = outcome {
        span.record("error.type", error.kind().code());
        span.record("otel.status_code", "ERROR");
    }
}

//! The spans of a store's work: below the caller's span, with the attribute names of OpenTelemetry.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Cursor;
use std::sync::{Arc, Mutex};

use filestore_core::{FilePolicy, FileStore, NewUpload, Scope};
use image::{ImageFormat, Rgb, RgbImage};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Instrument as _, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// A span that was opened: its name, that of its parent, and its fields.
#[derive(Debug, Clone, Default)]
struct Seen {
    id: u64,
    name: &'static str,
    parent: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Seen>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| Some(span.parent()?.name()));
        let name = attributes.metadata().name();
        let mut seen = Seen { id: id.into_u64(), name, parent, ..Seen::default() };
        attributes.record(&mut seen);
        self.0.lock().unwrap().push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut all = self.0.lock().unwrap();
        let seen = all.iter_mut().rev().find(|seen| seen.id == id.into_u64());
        values.record(seen.unwrap());
    }
}

impl Recorder {
    fn find(&self, name: &str) -> Seen {
        let all = self.0.lock().unwrap();
        all.iter().rev().find(|seen| seen.name == name).cloned().unwrap()
    }
}

fn new() -> NewUpload {
    NewUpload::new("acme".parse().unwrap(), "gallery".parse().unwrap()).with_name("a.png")
}

#[tokio::test]
async fn work_is_below_the_span_of_its_caller() {
    let recorder = Recorder::default();
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let store = FileStore::temporary().await.unwrap();
    let mut png = Cursor::new(Vec::new());
    RgbImage::from_pixel(640, 480, Rgb([1, 2, 3])).write_to(&mut png, ImageFormat::Png).unwrap();

    let request = tracing::info_span!("request");
    let work = async {
        let record = store.upload(new(), &png.get_ref()[..]).await.unwrap();
        store.scoped(&Scope::All).variant(record.file_id, 200).await.unwrap();
        record
    };
    let record = work.instrument(request).await;

    let upload = recorder.find("upload");
    assert_eq!(upload.parent, Some("request"));
    assert_eq!(upload.fields["filestore.organization.id"], "acme");
    assert_eq!(upload.fields["filestore.file.id"], record.file_id.to_string());
    assert_eq!(upload.fields["file.size"], record.blob.size_bytes.to_string());
    assert!(!upload.fields.contains_key("error.type"));
    let commit = recorder.find("commit");
    assert_eq!((commit.parent, &*commit.fields["db.system.name"]), (Some("upload"), "sqlite"));
    let variant = recorder.find("variant");
    assert_eq!(
        (variant.parent, &*variant.fields["filestore.variant.size"]),
        (Some("request"), "200")
    );
}

#[tokio::test]
async fn a_failure_has_the_code_of_its_error() {
    let recorder = Recorder::default();
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let store = FileStore::temporary().await.unwrap();

    let new = new().with_policy(FilePolicy::new().types(["image/*"]));
    store.upload(new, &b"no picture"[..]).await.unwrap_err();
    for name in ["commit", "upload"] {
        let failed = recorder.find(name);
        assert_eq!(failed.fields["error.type"], "invalid_field", "{name}");
        assert_eq!(failed.fields["otel.status_code"], "ERROR");
    }
}

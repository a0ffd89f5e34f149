//! Where the bytes of a file are.

use super::facts::{counted, verb};
use super::{Fact, FactCode, Subject};

impl Subject<'_> {
    /// Describes the place of the content, of replaced content, and of objects that are being written.
    pub(super) fn place(&self) -> Vec<Fact> {
        let replaced = self.work.replaced.iter().map(|group| {
            let blobs = counted(group.count, "replaced blob");
            let provider = self.seen.shown(&group.provider);
            let is = verb(group.count, "is", "are");
            Fact::new(FactCode::Replaced, format!("{blobs} {is} still at {provider}"))
                .at(provider)
                .counting(group.count)
        });
        let writes = self.work.writes.iter().map(|write| {
            let provider = self.seen.shown(&write.provider);
            let sentence = format!("an object for this file is being written to {provider}");
            Fact::new(FactCode::BeingWritten, sentence).at(provider).since(write.begun_at)
        });
        std::iter::once(self.current()).chain(replaced).chain(writes).collect()
    }

    /// Describes the place of the current content.
    fn current(&self) -> Fact {
        let (holder, blob) = (self.holder(), &self.record().blob);
        let provider = self.seen.shown(holder);
        let (code, sentence) = if self.seen.is_backend(holder) {
            (FactCode::Backend, format!("LOCAL: {provider} stores the content for the server"))
        } else if holder.is_local() {
            (FactCode::DataDirectory, "LOCAL: the data directory stores the content".to_owned())
        } else {
            (FactCode::Provider, format!("{provider} stores the content"))
        };
        Fact::new(code, sentence).at(provider).since(blob.stored_at)
    }
}

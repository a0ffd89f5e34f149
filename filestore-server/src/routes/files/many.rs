//! Requests about up to a thousand files: their ids, a result for each, and the facts for the audit log.

use std::sync::Arc;

use filestore_core::api::ErrorCode;
use filestore_core::{Error, ErrorKind, FileId, FileRecord, Result};
use serde_json::{Map, Value};

use crate::error;
use crate::reply::Failure;
use crate::request::call::Call;
use crate::request::notes::Notes;
use crate::request::object::{Object, required};

/// The maximum number of texts in an audit line that were sent as ids and are none.
const SHOWN_NOT_IDS: usize = 10;
/// The maximum bytes of such a text in an audit line.
const SHOWN_BYTES: usize = 64;

/// The ids of a request, as they were sent.
pub(super) struct Asked {
    ids: Vec<String>,
    parsed: Vec<Result<FileId>>,
}

/// The outcome for one id: the record, or the code and the explanation of an error.
pub(super) type Outcome = Result<Arc<FileRecord>, (ErrorCode, String)>;

impl Asked {
    /// Reads the body `{"ids": […]}` with 1 to `most` ids.
    pub(super) fn parse(json: &[u8], most: usize) -> error::Result<Self> {
        let ids = required("ids", Object::parse(json, &["ids"])?.texts("ids")?)?;
        if ids.is_empty() {
            return Err(Error::invalid("ids", "ids are the ids of one file at least").into());
        }
        if ids.len() > most {
            let message = format!("ids are at most {most}");
            return Err(Error::new(ErrorKind::TooManyItems, message)
                .with_field("ids")
                .with_limit(most as u64)
                .into());
        }
        let parsed = ids.iter().map(|id| id.parse()).collect();
        Ok(Self { ids, parsed })
    }

    /// Returns the ids that are ids, in their order.
    pub(super) fn known(&self) -> Vec<FileId> {
        self.parsed.iter().filter_map(|id| id.as_ref().ok().copied()).collect()
    }

    /// Joins each id with its outcome; `outcomes` are those of [`known`](Self::known).
    pub(super) fn join(
        self,
        call: &Call,
        outcomes: Vec<Result<Arc<FileRecord>>>,
    ) -> Vec<(String, Outcome)> {
        let mut outcomes = outcomes.into_iter();
        let joined = self.ids.into_iter().zip(self.parsed).map(|(id, parsed)| {
            let outcome = match parsed {
                Ok(_) => outcomes.next().expect("each id that is one has an outcome"),
                Err(error) => Err(error),
            };
            (id, outcome.map_err(|error| Failure::from(error).told(&call.id)))
        });
        joined.collect()
    }
}

/// Tells the audit log for how many files the request was `done`, and why not for the others. Also names the
/// files if the line has no room for the body.
///
/// Any text can be sent as an id. The line has only the first of the texts that are no ids.
pub(super) fn report(call: &Call, done: &str, outcomes: &[(String, Outcome)]) {
    let mut failed = Map::new();
    let mut not_ids = 0;
    for (id, outcome) in outcomes {
        let Err((code, _)) = outcome else { continue };
        let is_id = id.parse::<FileId>().is_ok();
        if is_id || not_ids < SHOWN_NOT_IDS {
            let shown = &id[..id.floor_char_boundary(SHOWN_BYTES)];
            failed.insert(shown.to_owned(), Value::from(code.as_str()));
        }
        not_ids += usize::from(!is_id);
    }

    let succeeded = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
    call.report(done, succeeded.clone().count());
    call.report("failed", failed);
    if not_ids > SHOWN_NOT_IDS {
        call.report("not_ids", not_ids);
    }
    if call.notes.as_ref().is_some_and(Notes::has_long_body) {
        call.report("file_ids", succeeded.map(|(id, _)| id.as_str()).collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_to_a_thousand_ids() {
        let of = |count: usize| format!("{{\"ids\":{:?}}}", vec!["x"; count]);
        assert_eq!(Asked::parse(of(1000).as_bytes(), 1000).unwrap().ids.len(), 1000);
        for (json, kind) in [
            (of(1001), ErrorCode::TooManyItems),
            (of(0), ErrorCode::InvalidField),
            ("{}".to_owned(), ErrorCode::MissingField),
            ("{\"ids\":\"x\"}".to_owned(), ErrorCode::InvalidField),
            ("{\"id\":[]}".to_owned(), ErrorCode::UnknownField),
            ("[]".to_owned(), ErrorCode::MalformedBody),
        ] {
            let refused = Asked::parse(json.as_bytes(), 1000).err().unwrap();
            assert_eq!(refused.code(), kind, "{json}");
        }
    }
}

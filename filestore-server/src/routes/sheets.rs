//! GET /sheets: the variants of many files in one image, or their positions.

use std::sync::Arc;
use std::time::Duration;

use filestore_core::api::{SheetCell, SheetMap};
use filestore_core::variants::{Sheet, VariantSize};
use filestore_core::web::serving::CSP_SANDBOX;
use filestore_core::{Error, ErrorKind, FileId, Result};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use warp::Filter;
use warp::reply::Response;

use crate::http::accept;
use crate::http::conditional::{Outcome, Validators, evaluate, if_match_holds};
use crate::http::etag::EntityTag;
use crate::http::query::Query;
use crate::reply::{self, Failure, NOSNIFF};
use crate::request::call::Call;
use crate::routes::filters::{RouteFilter, get};

/// The representations of a sheet. The first is the default.
const TYPES: [&str; 2] = ["image/webp", "application/json"];

/// The numbers of the cells, from 0, with pictures that are not ready yet.
const SHEET_PENDING: HeaderName = HeaderName::from_static("sheet-pending");

/// The numbers of the cells, from 0, that cannot be shown.
const SHEET_FAILED: HeaderName = HeaderName::from_static("sheet-failed");

/// The longest wait for pictures, in milliseconds.
const MAX_WAIT_MS: u64 = 10_000;

/// Builds `/sheets`.
pub(crate) fn routes() -> RouteFilter {
    warp::path!("sheets").and(get(sheet)).boxed()
}

async fn sheet(call: Arc<Call>) -> Result<Response, Failure> {
    let query = call.query(&["ids", "size", "fit", "wait_ms"])?;
    let ids = ids(&query)?;
    let size = size(&query)?;
    let fit = query.get("fit").map(str::parse).transpose()?.unwrap_or_default();
    if !is_wanted(&call.headers) {
        let message = "a sheet has a weak tag, which If-Match never matches";
        return Err(Error::new(ErrorKind::PreconditionFailed, message).into());
    }

    let kind = Kind::preferred(&call.headers);
    let files = call.store().scoped(&call.caller.scope);
    if let Some(wait) = wait(&query)? {
        let sheet = files.sheet_within(&ids, size, fit, wait).await?;
        let tag = kind.tag(&sheet.tag);
        if is_current(&call.headers, &tag) {
            return tagged(reply::not_modified(), tag);
        }
        return shown(&call, kind, &sheet);
    }
    if call.headers.contains_key(IF_NONE_MATCH) {
        let tag = call.store().serving(&call.caller.scope).sheet_tag(&ids, size, fit).await?;
        let tag = kind.tag(&tag);
        if is_current(&call.headers, &tag) {
            return tagged(reply::not_modified(), tag);
        }
    }

    let sheet = files.sheet(&ids, size, fit).await?;
    shown(&call, kind, &sheet)
}

/// Replies with a representation of a sheet, and names the cells without a picture.
fn shown(call: &Call, kind: Kind, sheet: &Sheet) -> Result<Response, Failure> {
    let mut response = match kind {
        Kind::Picture => picture(sheet),
        Kind::Map => reply::ok(&map(call, sheet))?,
    };
    let refused = |number: usize| sheet.cells[number].shown.as_ref().err();
    let is_pending = |error: &Error| error.kind() == ErrorKind::Busy;
    let numbers = |is_meant: &dyn Fn(&Error) -> bool| {
        let all = (0..sheet.cells.len()).filter(|&number| refused(number).is_some_and(is_meant));
        all.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
    };
    for (name, list) in [
        (SHEET_PENDING, numbers(&is_pending)),
        (SHEET_FAILED, numbers(&|error| !is_pending(error))),
    ] {
        if !list.is_empty() {
            let value = HeaderValue::try_from(list).expect("numbers are ASCII");
            response.headers_mut().insert(name, value);
        }
    }
    tagged(response, kind.tag(&sheet.tag))
}

/// A representation of a sheet.
#[derive(Clone, Copy)]
enum Kind {
    Picture,
    Map,
}

impl Kind {
    fn preferred(headers: &HeaderMap) -> Self {
        if accept::preferred(headers, TYPES) == TYPES[1] { Self::Map } else { Self::Picture }
    }

    /// Writes the entity tag of this representation.
    fn tag(self, digest: &str) -> String {
        match self {
            Self::Picture => format!("W/\"{digest}\""),
            Self::Map => format!("W/\"{digest}-map\""),
        }
    }
}

/// Adds the caching headers, which are the same for both representations.
fn tagged(mut response: Response, tag: String) -> Result<Response, Failure> {
    let headers = response.headers_mut();
    let tag =
        HeaderValue::try_from(tag).map_err(|e| Error::internal("writing an entity tag", e))?;
    headers.insert(ETAG, tag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.append(VARY, HeaderValue::from(ACCEPT));
    Ok(response)
}

/// Reads the ids, which are separated by commas.
fn ids(query: &Query) -> Result<Vec<FileId>> {
    let ids = query.get("ids").filter(|ids| !ids.is_empty());
    let ids = ids.ok_or_else(|| {
        Error::new(ErrorKind::MissingField, "the parameter is missing: ids").with_field("ids")
    })?;
    ids.split(',')
        .map(|id| {
            id.parse().map_err(|_| Error::invalid("ids", "ids are ULIDs, separated by commas"))
        })
        .collect()
}

fn size(query: &Query) -> Result<VariantSize> {
    let Some(text) = query.get("size") else { return VariantSize::try_from(200) };
    let size = VariantSize::from_path(text, text);
    size.map_err(|error| error.with_field("size"))
}

/// Reads how long to wait for pictures. `None` means until all are there.
fn wait(query: &Query) -> Result<Option<Duration>> {
    let Some(text) = query.get("wait_ms") else { return Ok(None) };
    let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let millis = text.parse().ok().filter(|millis| is_plain && *millis <= MAX_WAIT_MS);
    let millis = millis.ok_or_else(|| {
        let message = format!("wait_ms is an integer from 0 to {MAX_WAIT_MS}");
        Error::invalid("wait_ms", message).with_limit(MAX_WAIT_MS)
    })?;
    Ok(Some(Duration::from_millis(millis)))
}

/// Returns true if If-Match, if present, allows the sheet to be sent. The comparison is strong (RFC
/// 9110 section 13.1.1), and the sheet's tags are weak, so only `*` matches.
fn is_wanted(headers: &HeaderMap) -> bool {
    if_match_holds(headers, EntityTag::parse("W/\"\"").as_ref())
}

/// Returns true if If-None-Match names the sheet.
fn is_current(headers: &HeaderMap, tag: &str) -> bool {
    let Some(etag) = EntityTag::parse(tag) else { return false };
    let mut conditions = HeaderMap::new();
    conditions
        .extend(headers.get_all(IF_NONE_MATCH).iter().map(|value| (IF_NONE_MATCH, value.clone())));
    evaluate(&conditions, &Validators { etag, last_modified: None }) == Outcome::NotModified
}

fn picture(sheet: &Sheet) -> Response {
    let mut response = Response::new(sheet.webp.clone().into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(TYPES[0]));
    headers.insert(CONTENT_LENGTH, (sheet.webp.len() as u64).into());
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP_SANDBOX));
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

fn map(call: &Call, sheet: &Sheet) -> SheetMap {
    let cells = sheet.cells.iter().map(|cell| {
        let id = cell.file_id.to_string();
        match &cell.shown {
            Ok(place) => SheetCell::shown(id, place.x, place.y, place.width, place.height),
            Err(error) => {
                let (code, detail) = Failure::from(error.clone()).told(&call.id);
                SheetCell::empty(id, code, detail)
            }
        }
    });
    let grid = sheet.grid;
    SheetMap::new(grid.cell(), grid.columns(), grid.rows(), cells.collect())
}

//! Fields of forms. Each may occur once and is read as soon as it arrives, so that a bad field is
//! refused before the bytes of a file behind it are received.

use std::str::FromStr;

use filestore_core::uploads::PartHints;
use filestore_core::web::media;
use filestore_core::{CustomMetadata, Error, ErrorKind, Result};

use super::call::Call;
use super::form::Part;
use super::room::Incoming;

/// The most bytes a text field of a form may have.
const TEXT_BYTES: usize = 8 << 10;

/// The field that browsers fill with the form's encoding (WHATWG HTML, section 4.10.21.5).
pub(crate) const CHARSET_FIELD: &str = "_charset_";

/// A field that may occur once.
#[derive(Debug)]
pub(crate) struct Once<T>(Option<T>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Once<T> {
    /// Returns the value, if the field has arrived.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// Takes the value, if the field has arrived.
    pub(crate) fn take(self) -> Option<T> {
        self.0
    }

    /// Sets the value; `RepeatedField` the second time.
    pub(crate) fn set(&mut self, name: &str, value: T) -> Result<()> {
        self.expect_first(name)?;
        self.0 = Some(value);
        Ok(())
    }

    /// Refuses a second field of the name before the field is read.
    pub(crate) fn expect_first(&self, name: &str) -> Result<()> {
        if self.0.is_none() {
            return Ok(());
        }
        let message = format!("a field is given more than once: {name}");
        Err(Error::new(ErrorKind::RepeatedField, message).with_field(name))
    }

    /// Sets the value that a signed URL has fixed; `Forbidden` if the field says otherwise.
    pub(crate) fn fix(&mut self, name: &str, fixed: T) -> Result<()>
    where
        T: PartialEq,
    {
        if self.0.as_ref().is_some_and(|given| *given != fixed) {
            let message = format!("the signed URL has another value for the field: {name}");
            return Err(Error::new(ErrorKind::Forbidden, message).with_field(name));
        }
        self.0 = Some(fixed);
        Ok(())
    }

    /// Reads the part as text and the text as the value.
    pub(crate) async fn read(
        &mut self,
        part: &mut Part<'_>,
        parse: impl FnOnce(&str) -> Result<T>,
    ) -> Result<()> {
        self.expect_first(part.name())?;
        let text = part.text(TEXT_BYTES).await?;
        self.0 = Some(parse(&text).map_err(|e| e.with_field(part.name()))?);
        Ok(())
    }
}

/// Takes the text of a field that has no meaning here. The field is read like any other, once and up
/// to the limit of text: otherwise it could be as long as a file, or come a hundred times.
#[expect(clippy::unnecessary_wraps, reason = "every reader of a field has this form")]
pub(crate) fn ignored(_: &str) -> Result<()> {
    Ok(())
}

/// Reads a checked type.
pub(crate) fn parsed<T: FromStr<Err = Error>>(text: &str) -> Result<T> {
    text.parse()
}

/// Reads `true`, `false`, `1` or `0`, any case.
pub(crate) fn flag(text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::invalid("flag", "a boolean is true, false, 1 or 0")
            .with_allowed(["true", "false", "1", "0"])),
    }
}

/// Reads a number of bytes: plain decimal digits.
pub(crate) fn byte_count(text: &str) -> Result<u64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let read = text.parse().ok().filter(|_| is_plain);
    read.ok_or_else(|| Error::invalid("max_size", "max_size is a whole number, 0 or more"))
}

/// Reads a name of at most `limit` characters. A browser sends an input that was left blank as an
/// empty field: an empty field is no name.
pub(crate) fn name(limit: usize) -> impl FnOnce(&str) -> Result<Option<String>> {
    move |text| given(text, |text| media::check_name(text, limit))
}

/// Reads a media type; blank is none.
pub(crate) fn mime_type(text: &str) -> Result<Option<String>> {
    given(text, |text| media::check_mime_type("mime_type", text))
}

/// Reads custom metadata, a JSON object; blank is none.
pub(crate) fn metadata(text: &str) -> Result<Option<CustomMetadata>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some)
}

fn given(text: &str, check: impl FnOnce(&str) -> Result<()>) -> Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    check(text).map(|()| Some(text.to_owned()))
}

/// Makes the error of a field that the form does not have.
pub(crate) fn unknown(name: &str, known: &[&str]) -> Error {
    Error::new(ErrorKind::UnknownField, format!("an unknown field: {name}"))
        .with_field(name)
        .with_allowed(known.iter().copied())
}

/// Takes the value of a required field; `MissingField` without one.
pub(crate) fn required<T>(name: &str, field: Once<T>) -> Result<T> {
    field.take().ok_or_else(|| missing(name))
}

/// Makes the error of a form without a required field.
pub(crate) fn missing(name: &str) -> Error {
    Error::new(ErrorKind::MissingField, format!("a required field is missing: {name}"))
        .with_field(name)
}

/// Returns the hints of the part's header about its file.
pub(crate) fn hints(part: &Part<'_>) -> PartHints {
    let header = part.header();
    let mut hints = PartHints::default();
    hints.file_name = header.file_name.clone().filter(|name| !name.is_empty());
    hints.content_type.clone_from(&header.content_type);
    hints
}

/// Receives the part's bytes, as `stage` says, in room that grows with them. `None` for a file field
/// without a file, which a browser sends as an empty file name and no bytes.
pub(crate) async fn receive(
    call: &Call,
    part: &mut Part<'_>,
    stage: impl Future<Output = Result<Incoming>>,
) -> Result<Option<Incoming>> {
    let mut next = part.chunk().await?;
    if next.is_none() && part.header().file_name.as_deref() == Some("") {
        return Ok(None);
    }

    let mut incoming = stage.await.map_err(|e| named(e, part.name()))?;
    let mut ask_at = incoming.room.first();
    while let Some(chunk) = next {
        incoming.writer.write(chunk).await.map_err(|e| named(e, part.name()))?;
        let received = incoming.writer.size_bytes();
        if received > ask_at {
            ask_at = incoming.room.grow(call, received).await?;
        }
        next = part.chunk().await?;
    }

    Ok(Some(incoming))
}

/// Names the part in the error, unless the error is about something other than the part's bytes.
fn named(error: Error, part: &str) -> Error {
    match error.details().field.as_deref() {
        None | Some("file") => error.with_field(part),
        Some(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_true_false_1_0_in_any_case() {
        for (text, value) in
            [("true", true), ("TRUE", true), ("1", true), ("False", false), ("0", false)]
        {
            assert_eq!(flag(text).unwrap(), value, "{text}");
        }

        for text in ["", "yes", "on", " true", "2", "01"] {
            assert!(flag(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_field_given_twice_is_named() {
        let mut field = Once::default();
        field.set("x", 1).unwrap();
        let error = field.set("x", 1).unwrap_err();
        assert_eq!(
            (error.kind(), error.details().field.as_deref()),
            (ErrorKind::RepeatedField, Some("x"))
        );
    }
}

//! Fields of forms. Each can occur once. Each field is checked as soon as it arrives, so that a bad field is
//! refused before the bytes of a following file arrive.

use std::str::FromStr;

use filestore_core::uploads::{PartHints, UploadSession};
use filestore_core::web::media;
use filestore_core::{CustomMetadata, ErrorKind};

use super::form::Part;
use crate::error::{Error, Refusal, RefusalKind, Result};

/// The maximum size of a text field in a form, in bytes.
const TEXT_BYTES: usize = 8 << 10;

pub(crate) use crate::multipart::CHARSET_FIELD;

/// A field that can occur once.
#[derive(Debug)]
pub(crate) struct Once<T> {
    value: Option<T>,
    /// True if the field has occurred, be it blank.
    occurred: bool,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { value: None, occurred: false }
    }
}

impl<T> Once<T> {
    /// Returns the value, if the field has arrived.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Removes and returns the value, if the field has arrived.
    pub(crate) fn take(self) -> Option<T> {
        self.value
    }

    /// Sets the value. `RepeatedField` the second time.
    pub(crate) fn set(&mut self, name: &str, value: T) -> Result<()> {
        self.expect_first(name)?;
        self.keep(Some(value));
        Ok(())
    }

    fn keep(&mut self, value: Option<T>) {
        (self.value, self.occurred) = (value, true);
    }

    /// Refuses a second field of the name before the field is read.
    pub(crate) fn expect_first(&self, name: &str) -> Result<()> {
        if !self.occurred {
            return Ok(());
        }
        let message = format!("a field is given more than once: {name}");
        Err(Refusal::new(RefusalKind::RepeatedField, message).with_field(name).into())
    }

    /// Sets the value from a signed URL. `Forbidden` if the field has another value.
    pub(crate) fn fix(&mut self, name: &str, fixed: T) -> filestore_core::Result<()>
    where
        T: PartialEq,
    {
        if self.value.as_ref().is_some_and(|given| *given != fixed) {
            let message = format!("the signed URL has another value for the field: {name}");
            return Err(filestore_core::Error::new(ErrorKind::Forbidden, message).with_field(name));
        }
        self.keep(Some(fixed));
        Ok(())
    }

    /// Reads the part as text, and parses the value.
    pub(crate) async fn read(
        &mut self,
        part: &mut Part<'_>,
        parse: impl FnOnce(&str) -> filestore_core::Result<T>,
    ) -> Result<()> {
        self.read_unless_blank(part, |text| parse(text).map(Some)).await
    }

    /// Reads the part as text and the text as the value, if it is one. A browser sends an input that was left
    /// blank as an empty field, which is as if absent.
    pub(crate) async fn read_unless_blank(
        &mut self,
        part: &mut Part<'_>,
        parse: impl FnOnce(&str) -> filestore_core::Result<Option<T>>,
    ) -> Result<()> {
        self.expect_first(part.name())?;
        let text = part.text(TEXT_BYTES).await?;
        let value = parse(&text).map_err(|e| e.with_field(part.name()))?;
        self.keep(value);
        Ok(())
    }
}

/// Ignores the text of a field without a meaning here. The field is read like any other, once and up to the
/// limit for text. Otherwise it could be as long as a file, or occur a hundred times.
#[expect(clippy::unnecessary_wraps, reason = "every reader of a field has this form")]
pub(crate) fn ignored(_: &str) -> filestore_core::Result<()> {
    Ok(())
}

/// Parses a checked type.
pub(crate) fn parsed<T: FromStr<Err = filestore_core::Error>>(
    text: &str,
) -> filestore_core::Result<T> {
    text.parse()
}

/// Parses `true`, `false`, `1` or `0` in any case.
pub(crate) fn flag(text: &str) -> filestore_core::Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(filestore_core::Error::invalid("flag", "a boolean is true, false, 1 or 0")
            .with_allowed(["true", "false", "1", "0"])),
    }
}

/// Parses a number of bytes in plain decimal digits.
pub(crate) fn byte_count(text: &str) -> filestore_core::Result<u64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let read = text.parse().ok().filter(|_| is_plain);
    read.ok_or_else(|| {
        filestore_core::Error::invalid("max_size", "max_size is a whole number, 0 or more")
    })
}

/// Parses a name of at most `limit` characters. Browsers send a blank input as an empty field, so an empty
/// field means no name.
pub(crate) fn name(limit: usize) -> impl FnOnce(&str) -> filestore_core::Result<Option<String>> {
    move |text| given(text, |text| media::check_name(text, limit))
}

/// Parses a media type. A blank field means none.
pub(crate) fn mime_type(text: &str) -> filestore_core::Result<Option<String>> {
    given(text, |text| media::check_mime_type("mime_type", text))
}

/// Parses custom metadata, a JSON object. A blank field means none.
pub(crate) fn metadata(text: &str) -> filestore_core::Result<Option<CustomMetadata>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some)
}

fn given(
    text: &str,
    check: impl FnOnce(&str) -> filestore_core::Result<()>,
) -> filestore_core::Result<Option<String>> {
    if text.is_empty() {
        return Ok(None);
    }
    check(text).map(|()| Some(text.to_owned()))
}

/// Returns the error for a field that the form does not have.
pub(crate) fn unknown(name: &str, known: &[&str]) -> Error {
    Refusal::new(RefusalKind::UnknownField, format!("an unknown field: {name}"))
        .with_field(name)
        .with_allowed(known)
        .into()
}

/// Returns the value of a required field. `MissingField` if it is missing.
pub(crate) fn required<T>(name: &str, field: Once<T>) -> filestore_core::Result<T> {
    field.take().ok_or_else(|| missing(name))
}

/// Returns the error for a missing required field.
pub(crate) fn missing(name: &str) -> filestore_core::Error {
    filestore_core::Error::new(
        ErrorKind::MissingField,
        format!("a required field is missing: {name}"),
    )
    .with_field(name)
}

/// Returns the hints in the part's header about its file.
pub(crate) fn hints(part: &Part<'_>) -> PartHints {
    let header = part.header();
    let mut hints = PartHints::default();
    hints.file_name = header.file_name.clone().filter(|name| !name.is_empty());
    hints.content_type.clone_from(&header.content_type);
    hints
}

/// Receives the part's bytes into the session, in which `begin` has begun a file. Returns false for a file
/// field without a file, which browsers send as an empty file name without bytes.
pub(crate) async fn receive<'s>(
    part: &mut Part<'_>,
    begin: impl Future<Output = filestore_core::Result<&'s mut UploadSession>>,
) -> Result<bool> {
    let mut next = part.chunk().await?;
    if next.is_none() && part.header().file_name.as_deref() == Some("") {
        return Ok(false);
    }

    let session = begin.await.map_err(|e| named(e, part.name()))?;
    while let Some(chunk) = next {
        session.write(chunk).await.map_err(|e| named(e, part.name()))?;
        next = part.chunk().await?;
    }
    Ok(true)
}

/// Adds the part's name to the error, unless the error is not about the part's bytes.
fn named(error: filestore_core::Error, part: &str) -> filestore_core::Error {
    use ErrorKind::{AlreadyPurging, Conflict, InvalidTransition, NotFound, PreconditionFailed};
    let is_of_target = matches!(
        error.kind(),
        NotFound | InvalidTransition | Conflict | AlreadyPurging | PreconditionFailed
    );
    match error.details().field.as_deref() {
        _ if is_of_target => error,
        None | Some("file") => error.with_field(part),
        Some(_) => error,
    }
}

#[cfg(test)]
mod tests {
    use filestore_core::api::ErrorCode;

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
    fn an_error_about_the_replaced_file_does_not_name_the_part() {
        let of = |kind| filestore_core::Error::new(kind, "x");
        let name = |error| named(error, "items[0].file").details().field.clone();
        assert_eq!(name(of(ErrorKind::NotFound)), None);
        assert_eq!(name(of(ErrorKind::InvalidTransition)), None);
        let condition = of(ErrorKind::PreconditionFailed).with_field("If-Match");
        assert_eq!(name(condition).as_deref(), Some("If-Match"));
        assert_eq!(name(of(ErrorKind::TooLarge)).as_deref(), Some("items[0].file"));
        let file = of(ErrorKind::TooLarge).with_field("file");
        assert_eq!(name(file).as_deref(), Some("items[0].file"));
    }

    #[test]
    fn a_field_given_twice_is_named() {
        let mut field = Once::default();
        field.set("x", 1).unwrap();
        let error = field.set("x", 1).unwrap_err();
        assert_eq!(
            (error.code(), error.details().field.as_deref()),
            (ErrorCode::RepeatedField, Some("x"))
        );
    }
}

//! The parameters of a media type or Content-Disposition: `*( OWS ";" OWS [ name "=" value ] )`.
//!
//! RFC 9110 section 5.6.6 with one difference in quoted strings: a backslash escapes only `"` and
//! `\`. Browsers send other backslashes as they are (`filename="C:\new.txt"`), and curl escapes just
//! these two.

use filestore_core::web::media::is_token_byte;

/// The most parameters of one value. Browsers and curl send at most three; each parameter is compared
/// with all before it, so a header full of them would cost a quarter of a second.
const MAX_PARAMS: usize = 16;

/// One parameter. Names compare without case and are kept in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Param {
    /// The name, in lower case.
    pub(super) name: String,
    /// The value, without quotes and escapes.
    pub(super) value: Vec<u8>,
    /// True if the value stood in quotes.
    pub(super) quoted: bool,
}

/// Reads the parameters in `text`, which starts at the first `;` or is blank. `unquoted` tests the
/// bytes of a value without quotes. Text outside the grammar, repeated names and more than
/// [`MAX_PARAMS`] parameters are refused.
pub(super) fn parse(text: &[u8], unquoted: fn(u8) -> bool) -> Result<Vec<Param>, &'static str> {
    let mut rest = text.trim_ascii_start();
    let mut params: Vec<Param> = Vec::new();

    while let Some((separator, after)) = rest.split_first() {
        if *separator != b';' {
            return Err("parameters are separated by a semicolon");
        }
        rest = after.trim_ascii_start();
        if rest.first().is_none_or(|b| *b == b';') {
            continue;
        }

        if params.len() == MAX_PARAMS {
            return Err("there are more than 16 parameters");
        }
        let (param, after) = one(rest, unquoted)?;
        if params.iter().any(|known| known.name == param.name) {
            return Err("a parameter is repeated");
        }
        params.push(param);
        rest = after.trim_ascii_start();
    }

    Ok(params)
}

/// Finds the parameter of that name.
pub(super) fn find<'a>(params: &'a [Param], name: &str) -> Option<&'a Param> {
    params.iter().find(|param| param.name == name)
}

fn one(text: &[u8], unquoted: fn(u8) -> bool) -> Result<(Param, &[u8]), &'static str> {
    let (name, rest) = split_while(text, is_token_byte);
    let Some((b'=', rest)) = rest.split_first() else {
        return Err("a parameter has no value");
    };
    if name.is_empty() {
        return Err("a parameter has no name");
    }

    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    if let Some(rest) = rest.strip_prefix(b"\"") {
        let (value, rest) = quoted(rest)?;
        return Ok((Param { name, value, quoted: true }, rest));
    }

    let (value, rest) = split_while(rest, unquoted);
    if value.is_empty() {
        return Err("a parameter has no value");
    }
    Ok((Param { name, value: value.to_vec(), quoted: false }, rest))
}

fn split_while(text: &[u8], take: fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !take(*b)).unwrap_or(text.len());
    text.split_at(end)
}

/// Reads a quoted string from after its opening quote: its value and the text after the closing quote.
///
/// If only a `\"` is left to close the string, that backslash is a character of the value: a
/// browser sends a file name that ends in a backslash like this, and no other reading is possible.
fn quoted(text: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut value = Vec::with_capacity(text.len());
    let mut at = 0;

    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'"', _) => return Ok((value, &text[at + 1..])),
            (b'\\', Some(b'"')) if at + 2 == text.len() => {
                value.push(b'\\');
                return Ok((value, &[]));
            }
            (b'\\', Some(next @ (b'"' | b'\\'))) => {
                value.push(*next);
                at += 2;
            }
            (byte, _) => {
                value.push(byte);
                at += 1;
            }
        }
    }

    Err("a quoted string is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Result<Vec<(String, String)>, &'static str> {
        let params = parse(text.as_bytes(), is_token_byte)?;
        Ok(params.into_iter().map(|p| (p.name, String::from_utf8(p.value).unwrap())).collect())
    }

    #[test]
    fn parameters_follow_the_grammar() {
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        for (text, expected) in [
            ("", vec![]),
            (" ; ", vec![]),
            ("; name=x", vec![pair("name", "x")]),
            (";NAME=\"a;b\" ; b=c;", vec![pair("name", "a;b"), pair("b", "c")]),
            (r#"; a="\"\\\n""#, vec![pair("a", r#""\\n"#)]),
            (r#"; a="end\""#, vec![pair("a", "end\\")]),
            (r#"; a="end\""; b=c"#, vec![pair("a", "end\""), pair("b", "c")]),
        ] {
            assert_eq!(pairs(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_seventeenth_parameter_is_refused() {
        let of = |count: usize| (0..count).map(|n| format!(";p{n}=x")).collect::<Vec<_>>().concat();
        assert_eq!(pairs(&of(MAX_PARAMS)).unwrap().len(), MAX_PARAMS);
        assert_eq!(pairs(&of(MAX_PARAMS + 1)), Err("there are more than 16 parameters"));
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        for text in [
            "name=x",
            "; name",
            "; =x",
            "; name=",
            "; name =x",
            "; name= x",
            "; name=x y",
            r#"; name="x"#,
            r#"; name="x"y"#,
            r#"; name="x" filename="y""#,
            "; name=x; name=y",
            "; name=x; NAME=x",
            r#"; filename="end\"; name="x""#,
            r#"; filename="end\"; name=x"#,
            "; näme=x",
        ] {
            assert!(pairs(text).is_err(), "{text}");
        }
    }
}

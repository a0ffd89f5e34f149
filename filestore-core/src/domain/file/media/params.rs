//! Parameters of a media type or a Content-Disposition: `*( OWS ";" OWS [ name "=" value ] )` (RFC
//! 9110 section 5.6.6).

use super::is_token_byte;

/// The syntax of parameter values.
#[derive(Debug, Clone, Copy)]
pub enum ParamSyntax {
    /// A token or quoted string, as in RFC 9110.
    Strict,
    /// The values in forms. Without quotes, a value has the bytes for which the test is true. In
    /// quotes, a backslash escapes only `"` and `\`, because browsers send other backslashes
    /// unchanged (`filename="C:\new.txt"`), and curl escapes only these two.
    Forms(fn(u8) -> bool),
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Name in lower case, because names ignore case.
    pub name: String,
    /// Value, without quotes and escapes.
    pub value: Vec<u8>,
    /// True if the value was in quotes.
    pub quoted: bool,
}

/// An iterator over parameters. Text outside the grammar is an error, and ends the iteration.
#[derive(Debug, Clone)]
pub struct Params<'t> {
    rest: &'t [u8],
    syntax: ParamSyntax,
}

impl<'t> Params<'t> {
    /// Reads the parameters in `text`, which begins with `;` or is blank.
    pub fn new(text: &'t [u8], syntax: ParamSyntax) -> Self {
        Self { rest: text, syntax }
    }

    fn advance(&mut self) -> Result<Option<Param>, &'static str> {
        loop {
            self.rest = trim_start(self.rest);
            let Some((separator, after)) = self.rest.split_first() else { return Ok(None) };
            if *separator != b';' {
                return Err("parameters are separated by a semicolon");
            }

            self.rest = trim_start(after);
            if self.rest.first().is_some_and(|b| *b != b';') {
                return self.one().map(Some);
            }
        }
    }

    fn one(&mut self) -> Result<Param, &'static str> {
        let (name, rest) = split_while(self.rest, is_token_byte);
        let Some((b'=', rest)) = rest.split_first() else {
            return Err("a parameter has no value");
        };
        if name.is_empty() {
            return Err("a parameter has no name");
        }

        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if let Some(rest) = rest.strip_prefix(b"\"") {
            let (value, rest) = match self.syntax {
                ParamSyntax::Strict => quoted_string(rest)?,
                ParamSyntax::Forms(_) => quoted_in_form(rest)?,
            };
            self.rest = rest;
            return Ok(Param { name, value, quoted: true });
        }

        let unquoted = match self.syntax {
            ParamSyntax::Strict => is_token_byte,
            ParamSyntax::Forms(unquoted) => unquoted,
        };
        let (value, rest) = split_while(rest, unquoted);
        if value.is_empty() {
            return Err("a parameter has no value");
        }
        self.rest = rest;
        Ok(Param { name, value: value.to_vec(), quoted: false })
    }
}

impl Iterator for Params<'_> {
    type Item = Result<Param, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if let Some(Err(_)) = next {
            self.rest = &[];
        }
        next
    }
}

/// Skips optional white space (RFC 9110 section 5.6.3).
fn trim_start(text: &[u8]) -> &[u8] {
    split_while(text, |b| matches!(b, b' ' | b'\t')).1
}

fn split_while(text: &[u8], take: fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !take(*b)).unwrap_or(text.len());
    text.split_at(end)
}

const NOT_CLOSED: &str = "a quoted string is not closed";

/// Reads a quoted string (RFC 9110 section 5.6.4) after its opening quote. Returns its value and
/// the text after the closing quote. A backslash escapes any next character.
fn quoted_string(text: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut value = Vec::with_capacity(text.len());
    let mut rest = text;

    while let Some((byte, after)) = rest.split_first() {
        let (byte, after) = match byte {
            b'"' => return Ok((value, after)),
            b'\\' => after.split_first().ok_or(NOT_CLOSED)?,
            _ => (byte, after),
        };
        if byte.is_ascii_control() && *byte != b'\t' {
            return Err("a quoted string has a control character");
        }
        value.push(*byte);
        rest = after;
    }

    Err(NOT_CLOSED)
}

/// Reads a quoted string like [`quoted_string`], with the rules of forms.
///
/// If only `\"` remains to close the string, the backslash is part of the value. A browser sends a
/// file name with a backslash at the end like this, and no other reading is possible.
fn quoted_in_form(text: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
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

    Err(NOT_CLOSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: ParamSyntax = ParamSyntax::Forms(is_token_byte);

    fn pairs(text: &str, syntax: ParamSyntax) -> Result<Vec<(String, String)>, &'static str> {
        let params = Params::new(text.as_bytes(), syntax);
        params.map(|p| p.map(|p| (p.name, String::from_utf8(p.value).unwrap()))).collect()
    }

    #[test]
    fn parameters_follow_the_grammar() {
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        for (text, expected) in [
            ("", vec![]),
            (" ; ", vec![]),
            ("; name=x", vec![pair("name", "x")]),
            (";NAME=\"a;b\" ; b=c;", vec![pair("name", "a;b"), pair("b", "c")]),
            (";\ta=\"b,c\"\t;d=e", vec![pair("a", "b,c"), pair("d", "e")]),
            (r#"; a="\"\\""#, vec![pair("a", r#""\"#)]),
            (r#"; a="end\""; b=c"#, vec![pair("a", "end\""), pair("b", "c")]),
            ("; a=b; A=c", vec![pair("a", "b"), pair("a", "c")]),
        ] {
            for syntax in [ParamSyntax::Strict, FORM] {
                assert_eq!(pairs(text, syntax), Ok(expected.clone()), "{text} {syntax:?}");
            }
        }
    }

    #[test]
    fn what_is_outside_the_grammar_is_refused() {
        for text in [
            "name=x",
            "; name",
            "; =x",
            "; name=",
            "; name =x",
            "; name= x",
            "; name=x y",
            "; name=x,y",
            "; name=x,",
            ";,name=x",
            ",",
            r#"; name="x"#,
            r#"; name="x"y"#,
            r#"; name="x",y"#,
            r#"; name="x" filename="y""#,
            r#"; filename="end\"; name="x""#,
            r#"; filename="end\"; name=x"#,
            "; näme=x",
            "\n; name=x",
        ] {
            for syntax in [ParamSyntax::Strict, FORM] {
                assert!(pairs(text, syntax).is_err(), "{text} {syntax:?}");
            }
        }
    }

    #[test]
    fn the_backslashes_of_forms_are_not_those_of_the_grammar() {
        for (text, strict, form) in [
            (r#"; a="C:\new\x.txt""#, Some("C:newx.txt"), "C:\\new\\x.txt"),
            (r#"; a="end\""#, None, "end\\"),
        ] {
            let value = |syntax| pairs(text, syntax).ok().map(|pairs| pairs[0].1.clone());
            assert_eq!(value(ParamSyntax::Strict).as_deref(), strict, "{text}");
            assert_eq!(value(FORM).as_deref(), Some(form), "{text}");
        }
        assert!(pairs("; a=\"\x01\"", ParamSyntax::Strict).is_err());
    }

    #[test]
    fn an_error_is_the_last_item() {
        let mut params = Params::new(b"; a=b; c; d=e", FORM);
        assert!(params.next().unwrap().is_ok());
        assert!(params.next().unwrap().is_err());
        assert!(params.next().is_none());
    }
}

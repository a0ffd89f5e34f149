//! The parameters of a Content-Disposition and of a form's Content-Type. Each can occur once.

use filestore_core::web::media::{Param, ParamSyntax, Params};

/// The maximum number of parameters in a value. Browsers and curl send at most three. Each parameter is
/// compared with all earlier ones, so a header full of parameters would take a quarter of a second.
const MAX_PARAMS: usize = 16;

/// Parses the parameters in `text`, which starts at the first `;` or is blank. `unquoted` tests the bytes of
/// a value without quotes. Refuses text outside the grammar, repeated names, and more than [`MAX_PARAMS`]
/// parameters.
pub(super) fn parse(text: &[u8], unquoted: fn(u8) -> bool) -> Result<Vec<Param>, &'static str> {
    let mut params: Vec<Param> = Vec::new();

    for param in Params::new(text, ParamSyntax::Forms(unquoted)) {
        let param = param?;
        if params.len() == MAX_PARAMS {
            return Err("there are more than 16 parameters");
        }
        if params.iter().any(|known| known.name == param.name) {
            return Err("a parameter is repeated");
        }
        params.push(param);
    }

    Ok(params)
}

/// Finds the parameter with this name.
pub(super) fn find<'a>(params: &'a [Param], name: &str) -> Option<&'a Param> {
    params.iter().find(|param| param.name == name)
}

#[cfg(test)]
mod tests {
    use filestore_core::web::media::is_token_byte;

    use super::*;

    fn read(text: &str) -> Result<Vec<Param>, &'static str> {
        parse(text.as_bytes(), is_token_byte)
    }

    #[test]
    fn a_seventeenth_parameter_is_refused() {
        let of = |count: usize| (0..count).map(|n| format!(";p{n}=x")).collect::<Vec<_>>().concat();
        assert_eq!(read(&of(MAX_PARAMS)).unwrap().len(), MAX_PARAMS);
        assert_eq!(read(&of(MAX_PARAMS + 1)), Err("there are more than 16 parameters"));
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        for text in ["; name=x; name=y", "; name=x; NAME=x", "; name=x; name"] {
            assert!(read(text).is_err(), "{text}");
        }
        let params = read("; name=x; other=\"y\"").unwrap();
        assert_eq!(find(&params, "other").map(|param| &*param.value), Some(&b"y"[..]));
    }
}

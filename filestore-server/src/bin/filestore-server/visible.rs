//! Escapes invisible characters in log lines.
//!
//! Clients provide parts of a line: names, paths, and errors that quote them. The formatter escapes control
//! characters of ASCII and C1. This module escapes, in the form of JSON, the other dangerous characters:
//! characters that change the text direction, invisible characters, and characters that some programs treat
//! as line ends.

use std::io::{self, Write};

/// A writer of whole lines that escapes invisible characters.
pub(crate) struct VisibleLines<W>(pub(crate) W);

impl<W: Write> Write for VisibleLines<W> {
    /// Writes the line in one call, so that lines of several threads do not mix.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) if text.contains(is_invisible) => {
                self.0.write_all(escaped(text).as_bytes())?;
            }
            _ => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn escaped(text: &str) -> String {
    use std::fmt::Write as _;

    let mut escaped = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if is_invisible(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a String takes any text");
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Returns true for C1 control characters, format characters (category Cf of Unicode 17), and line and
/// paragraph separators.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_what_turns_hides_or_breaks_text_and_keeps_all_else() {
        for (line, shown) in [
            ("plain é 漢字 😀\n", "plain é 漢字 😀\n"),
            ("\u{1b}[32mINFO\u{1b}[0m\n", "\u{1b}[32mINFO\u{1b}[0m\n"),
            ("a\u{202e}b\u{2066}c\n", "a\\u202eb\\u2066c\n"),
            ("a\u{2028}b\u{2029}c\u{85}d\u{9b}31m\n", "a\\u2028b\\u2029c\\u0085d\\u009b31m\n"),
            ("\u{e0041}\u{feff}\n", "\\udb40\\udc41\\ufeff\n"),
        ] {
            let mut written = Vec::new();
            VisibleLines(&mut written).write_all(line.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), shown);
        }
    }
}

//! Names of files that are bytes rather than text: in forms of older clients, and on disks.

use std::ffi::OsStr;

/// The characters of the bytes 0x80 to 0x9F in Windows-1252. A dash stands for the five bytes without one.
const HIGH: &str = "€-‚ƒ„…†‡ˆ‰Š‹Œ-Ž--‘’“”•–—˜™š›œ-žŸ";

/// Decodes Windows-1252, which contains the printable characters of ISO-8859-1 (WHATWG Encoding Standard,
/// section 9). `None` if a byte has no character.
pub fn decode_windows_1252(bytes: &[u8]) -> Option<String> {
    bytes.iter().copied().map(character).collect()
}

fn character(byte: u8) -> Option<char> {
    match byte {
        0x80..=0x9F => HIGH.chars().nth(usize::from(byte - 0x80)).filter(|c| *c != '-'),
        other => Some(char::from(other)),
    }
}

/// Returns the name of a file on disk as text: UTF-8, or else Windows-1252. `None` if the name is neither. No
/// character is ever replaced.
///
/// ```
/// use std::ffi::OsStr;
///
/// assert_eq!(filestore_core::api::text_of_file_name(OsStr::new("größe.txt")).unwrap(), "größe.txt");
/// ```
pub fn text_of_file_name(name: &OsStr) -> Option<String> {
    name.to_str().map(str::to_owned).or_else(|| decode_windows_1252(name.as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character_or_none() {
        let all: Vec<_> = (0..=u8::MAX).filter_map(character).collect();
        let mut once = all.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!((all.len(), once.len(), HIGH.chars().count()), (251, 251, 32));
        assert!(!all.contains(&'\u{FFFD}'));
    }

    #[test]
    fn bytes_become_the_characters_of_windows_1252() {
        assert_eq!(decode_windows_1252(b"gr\xF6\xDFe \x80 \x93x\x94").unwrap(), "größe € “x”");
        for byte in [0x81, 0x8D, 0x8F, 0x90, 0x9D] {
            assert_eq!(decode_windows_1252(&[b'a', byte]), None, "{byte:x}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_on_disk_is_utf8_or_windows_1252() {
        use std::os::unix::ffi::OsStrExt;

        let text = |bytes| text_of_file_name(OsStr::from_bytes(bytes));
        assert_eq!(text("größe".as_bytes()).as_deref(), Some("größe"));
        assert_eq!(text(b"gr\xF6\xDFe").as_deref(), Some("größe"));
        assert_eq!(text(b"\x81"), None);
    }
}

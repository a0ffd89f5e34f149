//! File names of every kind that has broken a storage service somewhere.

/// A name, and what is special about it.
#[derive(Debug, Clone)]
pub struct OddName {
    /// What is special about it.
    pub what: &'static str,
    /// The name itself: a valid `original_name`.
    pub name: String,
}

/// Names that may be given: any Unicode but control characters, up to 255 characters.
pub fn odd_names() -> Vec<OddName> {
    let all: &[(&str, &str)] = &[
        ("quotes", "say \"hi\" and 'ho'.txt"),
        ("a quote at the end", "x\""),
        ("a backslash", "back\\slash.txt"),
        ("a backslash at the end", "x\\"),
        ("a slash", "a/b.txt"),
        ("a way up", "../../../etc/passwd"),
        ("emoji, joined and with a tone", "👩‍👩‍👧 👍🏽.png"),
        ("precomposed (NFC)", "gr\u{fc}\u{df}e \u{e9}.txt"),
        ("decomposed (NFD), as macOS has it", "gru\u{308}\u{df}e e\u{301}.txt"),
        ("Arabic with marks of direction", "\u{200f}تقرير\u{200e} 2026.pdf"),
        ("an override of direction", "photo\u{202e}gpj.exe"),
        ("isolates of direction", "\u{2067}abc\u{2069}.txt"),
        ("a device of Windows", "CON"),
        ("a device with an extension", "nul.txt"),
        ("another device", "LPT1.pdf"),
        ("a stream of NTFS", "a.txt:hidden"),
        ("a dot in front", ".htaccess"),
        ("two dots", ".."),
        ("dots and blanks at the end", "a . . "),
        ("blanks around", "  a b  "),
        ("percent signs", "100% %41 %2e%2e%2f %00 %.txt"),
        ("what looks like a parameter", "a; filename=b.exe; filename*=UTF-8''c.exe"),
        ("what looks like a header", "a.txt: Set-Cookie: b"),
        ("an option of a command", "--output=x"),
        ("shell", "$(reboot) `id` | & ; < > * ? [x] {y} ~ !"),
        ("markup", "<script>alert(1)</script>.html"),
        ("SQL", "'; DROP TABLE files; --%_"),
        ("no-break space and zero width", "a\u{a0}b\u{200b}c\u{feff}.txt"),
        ("separators of lines and paragraphs", "a\u{2028}b\u{2029}.txt"),
        ("the last code point", "\u{10ffff}.bin"),
        ("commas and semicolons", "a,b;c=d.txt"),
    ];

    let mut names: Vec<_> =
        all.iter().map(|(what, name)| OddName { what, name: (*name).to_owned() }).collect();
    names.push(OddName { what: "255 characters of one byte", name: "n".repeat(255) });
    names.push(OddName { what: "255 characters of four bytes", name: "🎉".repeat(255) });
    names
}

/// Names that are refused where they are given: each has a control character.
pub const CONTROL_NAMES: [&str; 9] = [
    "a\r\nSet-Cookie: b",
    "a\nb",
    "a\rb",
    "a\0b",
    "a\tb",
    "a\u{1b}[2Jb",
    "a\u{7f}b",
    "a\u{85}b",
    "a\u{9b}31mb",
];

/// Reads the name of a `Content-Disposition` as a user agent does: `filename*`, which RFC 6266 §4.3
/// prefers, and its text by RFC 8187. Insists on the strict form.
pub fn name_of_disposition(disposition: &str) -> String {
    assert!(disposition.bytes().all(|b| (0x20..0x7F).contains(&b)), "{disposition}");
    let (_, rest) = disposition.split_once("; filename=\"").expect("a plain name");
    let (plain, rest) = rest.split_once('"').expect("a quoted string that ends");
    assert!(!plain.contains(['\\', '%', '/']), "what some user agent decodes: {plain}");

    let encoded = rest.strip_prefix("; filename*=UTF-8''").expect("the exact name, and no more");
    let attr_char = |b: u8| b.is_ascii_alphanumeric() || b"!#$&+-.^_`|~%".contains(&b);
    assert!(encoded.bytes().all(attr_char), "{encoded}");
    percent_encoding::percent_decode_str(encoded).decode_utf8().expect("UTF-8").into_owned()
}

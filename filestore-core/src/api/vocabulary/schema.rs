//! JSON Schemas of words: the text of their documentation, and the words that this version knows.

use schemars::{Schema, json_schema};

/// Describes a word of a reply. Any other text is valid as well: a later server may know more words.
pub(crate) fn open_word(doc: &str, words: &[(&str, &str)]) -> Schema {
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    json_schema!({
        "description": described(doc, words),
        "anyOf": [{ "type": "string", "enum": known }, { "type": "string" }],
    })
}

/// Describes a word of a request: one of those that are known.
pub(crate) fn closed_word(doc: &str, words: &[(&str, &str)]) -> Schema {
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    json_schema!({ "description": described(doc, words), "type": "string", "enum": known })
}

/// Joins the documentation of a word's type with a list of the words and theirs.
fn described(doc: &str, words: &[(&str, &str)]) -> String {
    let mut text = lines_joined(doc);
    for (word, meaning) in words {
        text.push_str(&format!("\n- `{word}`: {}", lines_joined(meaning)));
    }
    text
}

/// Joins the lines of each paragraph; paragraphs stay apart.
fn lines_joined(doc: &str) -> String {
    let paragraphs = doc.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
    });
    paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
}

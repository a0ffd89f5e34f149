//! JSON Schemas of words, with their documentation and the words that this version knows.

use schemars::{Schema, json_schema};

/// Describes a word of a reply. Any other text is valid too, because a later server can know more
/// words.
pub(crate) fn open_word(doc: &str, words: &[(&str, &str)]) -> Schema {
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    json_schema!({
        "description": described(doc, words),
        "anyOf": [{ "type": "string", "enum": known }, { "type": "string" }],
    })
}

/// Describes a word of a request. Only known words are valid.
pub(crate) fn closed_word(doc: &str, words: &[(&str, &str)]) -> Schema {
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    json_schema!({ "description": described(doc, words), "type": "string", "enum": known })
}

/// Joins the documentation of the type with a list of its words.
fn described(doc: &str, words: &[(&str, &str)]) -> String {
    let mut text = lines_joined(doc);
    for (word, meaning) in words {
        text.push_str(&format!("\n- `{word}`: {}", lines_joined(meaning)));
    }
    text
}

/// Joins the lines of each paragraph, and keeps paragraphs apart.
fn lines_joined(doc: &str) -> String {
    let paragraphs = doc.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
    });
    paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
}

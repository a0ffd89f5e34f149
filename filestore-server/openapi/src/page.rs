//! The document as a page: nothing loaded from elsewhere, all of it in one file. Its one script only filters.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::example;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The field that the script shows.
const FILTER: &str = "<div class=\"filter\" role=\"search\" hidden>\n<label for=\"filter\">Filter</label>\n\
    <input id=\"filter\" type=\"search\" autocomplete=\"off\" placeholder=\"for example: post files\">\n\
    <output id=\"found\" for=\"filter\"></output>\n</div>\n";

/// Writes the page that shows a document.
pub(crate) fn of(document: &Value) -> String {
    let page = Page { document };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} {version}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title} {version}</h1>\n\
         {about}<p><a href=\"openapi.json\">openapi.json</a> \
         <a class=\"to-contents\" href=\"#contents\">contents</a></p>\n{FILTER}\
         {operations}<section>\n<h2 id=\"schemas\">Schemas</h2>\n{schemas}</section>\n</main>\n\
         <nav id=\"contents\" aria-label=\"Contents\">\n{contents}</nav>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        title = escaped(text(&document["info"]["title"])),
        version = escaped(text(&document["info"]["version"])),
        contents = page.contents(),
        about = prose(text(&document["info"]["description"])),
        operations = page.operations(),
        schemas = page.schemas(),
    )
}

/// The type of every refusal.
const PROBLEM: &str = "<a href=\"#schema-Problem\">Problem</a>";

struct Page<'a> {
    document: &'a Value,
}

/// A method of a path, and its description.
type Entry<'a> = (&'a str, &'a str, &'a Value);

impl<'a> Page<'a> {
    /// Returns the operations of a tag.
    fn of_tag(&self, tag: &str) -> Vec<Entry<'a>> {
        let paths = members(&self.document["paths"]);
        let all = paths.flat_map(|(path, methods)| {
            members(methods).map(move |(method, operation)| (method, path, operation))
        });
        all.filter(|(_, _, operation)| operation["tags"][0] == tag).collect()
    }

    fn tags(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let tags = self.document["tags"].as_array().into_iter().flatten();
        tags.map(|tag| (text(&tag["name"]), text(&tag["description"])))
    }

    fn contents(&self) -> String {
        let mut out = String::new();
        for (tag, _) in self.tags() {
            let _ = writeln!(out, "<section>\n<strong><a href=\"#{tag}\">{tag}</a></strong>\n<ul>");
            for (method, path, operation) in self.of_tag(tag) {
                let id = text(&operation["operationId"]);
                let _ = writeln!(
                    out,
                    "<li><a href=\"#{id}\"><span class=\"method {method}\">{}</span><code>{}</code></a></li>",
                    method.to_uppercase(),
                    breakable(path),
                );
            }
            out.push_str("</ul>\n</section>\n");
        }
        out.push_str("<strong><a href=\"#schemas\">Schemas</a></strong>\n");
        out
    }

    fn operations(&self) -> String {
        let mut out = String::new();
        for (tag, description) in self.tags() {
            let _ = writeln!(out, "<section>\n<h2 id=\"{tag}\">{tag}</h2>\n{}", prose(description));
            for entry in self.of_tag(tag) {
                self.operation(&mut out, entry);
            }
            out.push_str("</section>\n");
        }
        out
    }

    fn operation(&self, out: &mut String, (method, path, operation): Entry<'_>) {
        let _ = writeln!(
            out,
            "<article id=\"{id}\">\n<h3><span class=\"method {method}\">{name}</span> <code>{base}{path}</code><br>\
             <small>{summary}</small></h3>\n{description}",
            id = text(&operation["operationId"]),
            name = method.to_uppercase(),
            base = text(&self.document["servers"][0]["url"]),
            path = breakable(path),
            summary = escaped(text(&operation["summary"])),
            description = prose(text(&operation["description"])),
        );
        out.push_str(&example::of(self.document, method, path, operation));

        if let Some(parameters) = operation["parameters"].as_array() {
            out.push_str("<h4>Parameters</h4>\n<table>\n");
            for parameter in parameters {
                self.parameter(out, parameter);
            }
            out.push_str("</table>\n");
        }
        if let Some(content) = operation["requestBody"]["content"].as_object() {
            out.push_str("<h4>Body</h4>\n");
            content_table(out, content);
        }
        self.replies(out, &operation["responses"]);
        out.push_str("</article>\n");
    }

    fn parameter(&self, out: &mut String, parameter: &Value) {
        let parameter = resolved(self.document, parameter);
        let place = format!("{}, {}", text(&parameter["in"]), kind(&parameter["schema"]));
        let is_required = parameter["required"] == true;
        row(out, text(&parameter["name"]), is_required, &place, text(&parameter["description"]));
    }

    fn replies(&self, out: &mut String, replies: &Value) {
        out.push_str("<h4>Replies</h4>\n<table>\n");
        let (refusals, good): (Vec<_>, Vec<_>) =
            members(replies).partition(|(_, reply)| reply.get("$ref").is_some());
        for (status, reply) in good {
            let content: Vec<_> = members(&reply["content"])
                .map(|(media, body)| match body["schema"].get("format") {
                    Some(_) => format!("<code>{}</code>", escaped(media)),
                    None => kind(&body["schema"]),
                })
                .collect();
            row(out, status, false, &content.join("<br>"), text(&reply["description"]));
        }
        out.push_str("</table>\n<details><summary>Refusals and failures: ");
        let statuses: Vec<_> = refusals.iter().map(|(status, _)| *status).collect();
        let _ = writeln!(out, "{}</summary>\n<table>", statuses.join(", "));

        for (status, reply) in refusals {
            let reply = resolved(self.document, reply);
            row(out, status, false, PROBLEM, text(&reply["description"]));
        }
        out.push_str("</table></details>\n");
    }

    fn schemas(&self) -> String {
        let mut out = String::new();
        for (name, schema) in members(&self.document["components"]["schemas"]) {
            let _ = writeln!(
                out,
                "<article id=\"schema-{name}\">\n<h3>{name}</h3>\n{}",
                prose(text(&schema["description"]))
            );
            fields(&mut out, schema);
            out.push_str("</article>\n");
        }
        out
    }
}

/// Follows a reference.
pub(crate) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value["$ref"].as_str() else { return value };
    let pointer = reference.strip_prefix('#').expect("references stay within the document");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

/// Shows each media type of a body, and its fields where they have no name of their own.
fn content_table(out: &mut String, content: &Map<String, Value>) {
    for (media, body) in content {
        let schema = &body["schema"];
        let is_named = schema.get("$ref").is_some() || schema.get("items").is_some();
        let shown = if is_named { kind(schema) } else { String::new() };
        let _ = writeln!(out, "<p><code>{}</code> {shown}</p>", escaped(media));
        if !is_named {
            fields(out, schema);
        }
    }
}

/// Writes the table of an object's fields.
fn fields(out: &mut String, schema: &Value) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let mut named = members(&schema["properties"]).peekable();
    if named.peek().is_none() {
        return;
    }

    out.push_str("<table>\n");
    for (name, property) in named {
        let is_required = required.iter().any(|required| *required == name);
        row(out, name, is_required, &kind(property), text(&property["description"]));
    }
    out.push_str("</table>\n");
}

fn row(out: &mut String, name: &str, is_required: bool, kind: &str, description: &str) {
    let mark = if is_required { " <span class=\"required\">required</span>" } else { "" };
    let _ = writeln!(
        out,
        "<tr><td><code>{}</code>{mark}</td><td>{kind}</td><td>{}</td></tr>",
        escaped(name),
        prose(description)
    );
}

/// Describes the type of a schema in a few words of HTML.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(|word| match word {
            Value::String(word) => format!("<code>{}</code>", escaped(word)),
            other => format!("<code>{other}</code>"),
        });
        return words.collect::<Vec<_>>().join(", ");
    }
    if schema["type"] == "array" {
        return format!("array of {}", kind(&schema["items"]));
    }

    let types = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect::<Vec<_>>().join(" or "),
        other => text(other).to_owned(),
    };
    match schema["format"].as_str() {
        Some(format) => format!("{types} ({format})"),
        None => types,
    }
}

/// Renders the little Markdown that descriptions use: paragraphs, lists, code.
fn prose(markdown: &str) -> String {
    let mut out = String::new();
    for block in markdown.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut items = block.split("\n- ");
        let first = items.next().unwrap_or_default();
        let (lead, first_item) = match first.strip_prefix("- ") {
            Some(item) => ("", Some(item)),
            None => (first, None),
        };

        if !lead.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", inline(lead));
        }
        let items: Vec<_> = first_item
            .into_iter()
            .chain(items)
            .map(|item| format!("<li>{}</li>", inline(item)))
            .collect();
        if !items.is_empty() {
            let _ = writeln!(out, "<ul>{}</ul>", items.concat());
        }
    }
    out
}

/// Renders code between backquotes; links become their text.
fn inline(markdown: &str) -> String {
    let mut out = String::new();
    for (number, piece) in markdown.split('`').enumerate() {
        let piece = escaped(&without_links(piece));
        let _ = if number % 2 == 1 {
            write!(out, "<code>{piece}</code>")
        } else {
            write!(out, "{piece}")
        };
    }
    out
}

/// Replaces `[text](address)` with the text: the reference is not served.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (label, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        out.push_str(before);
        out.push_str(label);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// Escapes a path, which may break behind each slash.
fn breakable(path: &str) -> String {
    escaped(path).replace('/', "/<wbr>")
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

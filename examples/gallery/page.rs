//! The page: HTML that holds its pictures itself.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use filestore_client::{FileRecord, Variant};

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Gallery</title>
<style>
body { margin: 0 auto; padding: 48px 24px; max-width: 980px; background: #14171c; color: #e6e8eb;
       font: 16px/1.5 system-ui, sans-serif }
h1 { font-weight: 600; letter-spacing: -.02em; margin: 0 }
p { color: #9aa3af; margin: 4px 0 32px }
img { display: block; border-radius: 10px }
figure { margin: 0 }
figcaption { color: #9aa3af; font-size: 13px; padding-top: 8px }
.sizes { display: flex; gap: 14px; align-items: end; flex-wrap: wrap; margin-bottom: 56px }
.grid { display: grid; gap: 28px; grid-template-columns: repeat(auto-fill, minmax(280px, 1fr)) }
.grid img { width: 100%; height: auto; box-shadow: 0 8px 30px #0006 }
</style>
"#;

/// Begins a page with one photograph in all its sizes, each as large as the others let it be.
pub(crate) fn begin(squares: &[(u32, Variant)]) -> String {
    let mut page = String::from(HEAD);
    page.push_str("<h1>One upload</h1>\n<p>Seven upright squares, each made once.</p>\n");

    page.push_str("<div class=sizes>\n");
    for (size, variant) in squares {
        let shown = size * 3 / 10;
        let source = data_url(variant);
        let image = format!("<img width={shown} height={shown} alt=\"{size}\" src=\"{source}\">");
        add_figure(&mut page, &image, &format!("{size}"));
    }
    page.push_str("</div>\n<h1>Gallery</h1>\n<p>Every photograph came in on its side.</p>\n");
    page.push_str("<div class=grid>\n");
    page
}

/// Adds a photograph to the page.
pub(crate) fn add(page: &mut String, record: &FileRecord, small: &Variant, large: &Variant) {
    let name = escaped(record.original_name.trim_end_matches(".jpg"));
    let (small, large) = (data_url(small), data_url(large));
    let image =
        format!("<img width=300 height=300 alt=\"{name}\" src=\"{small}\" srcset=\"{large} 2x\">");
    add_figure(page, &image, &name);
}

/// Ends the page.
pub(crate) fn end(page: &mut String) {
    page.push_str("</div>\n</html>\n");
}

fn add_figure(page: &mut String, image: &str, caption: &str) {
    writeln!(page, "<figure>{image}<figcaption>{caption}</figcaption></figure>")
        .expect("a String takes everything");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// A variant as a URL that holds the bytes (RFC 2397). On a real page, `src` is the variant's own
/// URL: `/api/v1/files/<file id>/300/300`.
fn data_url(variant: &Variant) -> String {
    format!("data:{};base64,{}", variant.content_type, STANDARD.encode(&variant.bytes))
}

//! The parser as a whole: what is encoded comes back however it is cut, and what grows is bounded.

use bytes::Bytes;
use filestore_core::{ErrorKind, Result};
use proptest::prelude::*;

use super::{Boundary, Event, Limits, Parser};

const BOUNDARY: &str = "b0unda-ry";

#[derive(Debug, Clone)]
struct Field {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    data: Vec<u8>,
}

impl Field {
    fn text(name: &str, data: &[u8]) -> Self {
        Self { name: name.into(), file_name: None, content_type: None, data: data.to_vec() }
    }
}

/// Encodes the form as a browser does.
fn encode(fields: &[Field]) -> Vec<u8> {
    let escape = |text: &str| text.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22");
    let mut body = Vec::new();

    for field in fields {
        let file_name = field.file_name.as_ref().map(|n| format!("; filename=\"{}\"", escape(n)));
        let content_type = field.content_type.as_ref().map(|t| format!("Content-Type: {t}\r\n"));
        let (name, file_name, content_type) =
            (escape(&field.name), file_name.unwrap_or_default(), content_type.unwrap_or_default());
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file_name}\r\n{content_type}\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&field.data);
        body.extend_from_slice(b"\r\n");
    }

    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

fn parser(limits: Limits) -> Parser {
    Parser::new(&Boundary::new(BOUNDARY).unwrap(), limits)
}

/// Reads the fields of a body that arrives in `chunks`.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Result<Vec<Field>> {
    let mut parser = parser(limits);
    let (mut fields, mut open, mut ended) = (Vec::<Field>::new(), false, false);

    for chunk in chunks {
        parser.feed(Bytes::copy_from_slice(chunk));
        while let Some(event) = parser.next_event()? {
            assert!(!ended, "an event after the end");
            match event {
                Event::PartStart(header) => {
                    assert!(!std::mem::replace(&mut open, true));
                    fields.push(Field {
                        name: header.name,
                        file_name: header.file_name,
                        content_type: header.content_type,
                        data: Vec::new(),
                    });
                }
                Event::Data(data) => {
                    assert!(open && !data.is_empty());
                    fields.last_mut().unwrap().data.extend_from_slice(&data);
                }
                Event::PartEnd => assert!(std::mem::replace(&mut open, false)),
                Event::End => ended = true,
            }
        }
    }

    parser.finish()?;
    assert!(ended && !open);
    Ok(fields)
}

fn kind(body: &[u8]) -> ErrorKind {
    let whole = decode([body], Limits::default()).map(|f| f.len()).unwrap_err().kind();
    let bytewise = decode(body.chunks(1), Limits::default()).map(|f| f.len()).unwrap_err().kind();
    assert_eq!(whole, bytewise, "{}", String::from_utf8_lossy(body));
    whole
}

fn same(found: &[Field], expected: &[Field]) -> bool {
    format!("{found:?}") == format!("{expected:?}")
}

/// Generates bytes from pieces of the delimiter and others, without a whole delimiter.
fn tricky_data() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        (0..=BOUNDARY.len() + 3).prop_map(|n| format!("\r\n--{BOUNDARY}").as_bytes()[..n].to_vec()),
        (1..=BOUNDARY.len() + 3).prop_map(|n| format!("\r\n--{BOUNDARY}").as_bytes()[n..].to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
        Just(b"\r\r\n\n--".to_vec()),
    ];

    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()).prop_filter(
        "holds no delimiter",
        |data| {
            let line = format!("\r\n--{BOUNDARY}");
            let framed = [b"\r\n", data.as_slice()].concat();
            memchr::memmem::find(&framed, line.as_bytes()).is_none()
        },
    )
}

/// Generates text as a header line can carry it: no control character but CR and LF, no backslash.
fn header_text() -> impl Strategy<Value = String> {
    r#"[ -\[\]-~äß🎉\r\n"]{0,20}"#.prop_filter("survives the browser's encoding", |text| {
        !["%22", "%0D", "%0A"].iter().any(|code| text.contains(code))
    })
}

fn field() -> impl Strategy<Value = Field> {
    let content_type = proptest::option::of("[a-z]{1,8}/[a-z]{1,8}");
    (header_text(), proptest::option::of(header_text()), content_type, tricky_data()).prop_map(
        |(name, file_name, content_type, data)| Field { name, file_name, content_type, data },
    )
}

proptest! {
    #[test]
    fn a_form_cut_anywhere_in_two_is_the_same_form(fields in proptest::collection::vec(field(), 0..4)) {
        let body = encode(&fields);
        for cut in 0..=body.len() {
            let (head, tail) = body.split_at(cut);
            let found = decode([head, tail], Limits::default()).unwrap();
            prop_assert!(same(&found, &fields), "cut at {cut}: {found:?}");
        }
    }

    #[test]
    fn a_form_in_any_chunks_is_the_same_form(
        fields in proptest::collection::vec(field(), 0..6),
        sizes in proptest::collection::vec(1usize..40, 1..50),
    ) {
        let body = encode(&fields);
        let mut rest = body.as_slice();
        let mut chunks = Vec::new();

        for size in sizes.iter().cycle() {
            let (head, tail) = rest.split_at((*size).min(rest.len()));
            chunks.push(head);
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }

        let found = decode(chunks, Limits::default()).unwrap();
        prop_assert!(same(&found, &fields), "{found:?}");
    }

    #[test]
    fn a_form_cut_short_is_never_whole(fields in proptest::collection::vec(field(), 1..3), cut in any::<prop::sample::Index>()) {
        let body = encode(&fields);
        let end = body.len() - 2;
        prop_assert!(decode([&body[..cut.index(end)]], Limits::default()).is_err());
        prop_assert!(decode([&body[..end]], Limits::default()).is_ok());
    }

    #[test]
    fn no_input_panics_or_depends_on_its_chunks(noise in proptest::collection::vec(any::<u8>(), 0..200), pieces in tricky_data()) {
        let start = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=a\r\n");
        let body = [start.as_bytes(), &noise, &pieces].concat();
        let whole = decode([body.as_slice()], Limits::default()).map_err(|error| error.to_string());
        let bytewise = decode(body.chunks(1), Limits::default()).map_err(|error| error.to_string());
        prop_assert_eq!(format!("{whole:?}"), format!("{bytewise:?}"));
    }
}

#[test]
fn data_is_a_slice_of_the_chunk_it_came_in() {
    let body = Bytes::from(encode(&[Field::text("a", &[7; 1000])]));
    let mut parser = parser(Limits::default());
    parser.feed(body.clone());
    let mut lengths = Vec::new();

    while let Some(event) = parser.next_event().unwrap() {
        if let Event::Data(data) = event {
            assert!(body.as_ptr_range().contains(&data.as_ptr()));
            lengths.push(data.len());
        }
    }

    assert_eq!(lengths, [1000]);
}

#[test]
fn feeding_before_the_events_are_taken_loses_nothing() {
    let fields = [Field::text("a", b"one"), Field::text("b", b"two")];
    let mut parser = parser(Limits::default());

    for chunk in encode(&fields).chunks(5) {
        parser.feed(Bytes::copy_from_slice(chunk));
    }
    let mut data = Vec::new();

    while let Some(event) = parser.next_event().unwrap() {
        if let Event::Data(bytes) = event {
            data.extend_from_slice(&bytes);
        }
    }

    assert_eq!(data, b"onetwo");
    assert!(parser.finish().is_ok());
}

#[test]
fn what_rfc_2046_allows_around_parts_is_accepted() {
    let head = "Content-Disposition: form-data; name=a\r\n";
    for (body, fields) in [
        (format!("--{BOUNDARY}--"), vec![]),
        (format!("--{BOUNDARY}--\r\nepilogue\r\n--{BOUNDARY}\r\n"), vec![]),
        (format!("preamble\r\n--{BOUNDARY}--"), vec![]),
        (format!("\r\n--{BOUNDARY}--"), vec![]),
        (format!("preamble --{BOUNDARY}\r\n--{BOUNDARY}--"), vec![]),
        (format!("--{BOUNDARY} \t\r\n{head}\r\nx\r\n--{BOUNDARY}--"), vec![Field::text("a", b"x")]),
        (format!("--{BOUNDARY}\r\n{head}\r\n\r\n--{BOUNDARY}--"), vec![Field::text("a", b"")]),
        // A part without a body needs no second line end (section 5.1.1, body-part).
        (format!("--{BOUNDARY}\r\n{head}\r\n--{BOUNDARY}--"), vec![Field::text("a", b"")]),
    ] {
        for chunk in [1, 3, body.len()] {
            let found = decode(body.as_bytes().chunks(chunk), Limits::default()).unwrap();
            assert!(same(&found, &fields), "{body:?}: {found:?}");
        }
    }
}

#[test]
fn bodies_that_are_no_form_are_malformed() {
    let head = "Content-Disposition: form-data; name=a\r\n\r\n";
    for body in [
        String::new(),
        format!("--{BOUNDARY}"),
        format!("--{BOUNDARY}-"),
        format!("--{BOUNDARY}\r\n{head}x"),
        format!("--{BOUNDARY}\r\n{head}x\r\n--{BOUNDARY}"),
        format!("--{BOUNDARY}\r\n{head}x\r\n--{BOUNDARY}\r\n"),
        format!("--{BOUNDARY}\r\n{head}x\r\n--{BOUNDARY}x\r\n--{BOUNDARY}--"),
        format!("--{BOUNDARY}\r\n{head}x\r\n--{BOUNDARY}-x"),
        format!("--{BOUNDARY}\r\n{head}x\r\n--{BOUNDARY} x"),
        format!("--{BOUNDARY}\r\n{head}x\r\n--{BOUNDARY}\rx"),
        format!("--{BOUNDARY}\n{head}x\r\n--{BOUNDARY}--"),
        format!("--{BOUNDARY}\r\n\r\nx\r\n--{BOUNDARY}--"),
        format!("--{BOUNDARY}\r\n{head}x\n--{BOUNDARY}--"),
        "no boundary at all".to_owned(),
    ] {
        assert_eq!(kind(body.as_bytes()), ErrorKind::MalformedBody, "{body:?}");
    }
}

#[test]
fn a_body_with_bare_line_feeds_is_refused_by_that_name() {
    let head = "Content-Disposition: form-data; name=a";
    for body in [
        format!("--{BOUNDARY}\n{head}\n\nx\n--{BOUNDARY}--\n"),
        format!("--{BOUNDARY}\r\n{head}\n\nx\n--{BOUNDARY}--\n"),
        format!("--{BOUNDARY}\r\n{head}\nX: y\r\n\r\nx\r\n--{BOUNDARY}--\r\n"),
        format!("--{BOUNDARY}\r\n\n\nx\r\n--{BOUNDARY}--\r\n"),
        format!("--{BOUNDARY} \n{head}\r\n\r\nx\r\n--{BOUNDARY}--\r\n"),
    ] {
        for chunk in [1, 2, 3, body.len()] {
            let error = decode(body.as_bytes().chunks(chunk), Limits::default()).unwrap_err();
            assert!(error.message().contains("LF alone"), "{body:?}: {error}");
        }
    }

    let data = Field::text("a", b"one\ntwo\n\nthree\n");
    for chunk in [1, 2, 5, 1000] {
        let body = encode(std::slice::from_ref(&data));
        let found = decode(body.chunks(chunk), Limits::default()).unwrap();
        assert!(same(&found, std::slice::from_ref(&data)));
    }
}

#[test]
fn everything_a_client_can_make_grow_is_bounded() {
    let head = "Content-Disposition: form-data; name=a\r\n";
    let preamble = format!("{}\r\n--{BOUNDARY}--", "x".repeat(8193));
    assert_eq!(kind(preamble.as_bytes()), ErrorKind::MalformedBody);

    let padding = format!("--{BOUNDARY}{}\r\n", " ".repeat(8193));
    assert_eq!(kind(padding.as_bytes()), ErrorKind::MalformedBody);

    let epilogue = format!("--{BOUNDARY}--{}", "x".repeat(8193));
    assert_eq!(kind(epilogue.as_bytes()), ErrorKind::MalformedBody);

    let header = format!("--{BOUNDARY}\r\n{head}X: {}\r\n\r\n", "x".repeat(8192));
    assert_eq!(kind(header.as_bytes()), ErrorKind::TooLarge);

    let endless = format!("--{BOUNDARY}\r\n{}", "x".repeat(1 << 20));
    assert_eq!(kind(endless.as_bytes()), ErrorKind::TooLarge);
}

#[test]
fn parts_are_counted() {
    let limits = Limits::for_items(2);
    let mut fields = vec![Field::text("a", b""); 4 * 2 + 16];
    assert_eq!(decode([encode(&fields).as_slice()], limits).unwrap().len(), fields.len());
    fields.push(Field::text("a", b""));
    let error = decode([encode(&fields).as_slice()], limits).unwrap_err();
    assert_eq!((error.kind(), error.details().limit), (ErrorKind::TooLarge, Some(24)));
}

#[test]
fn after_an_error_there_are_only_errors() {
    let mut parser = parser(Limits::default());
    parser.feed(Bytes::from(format!("--{BOUNDARY}x")));
    assert!(parser.next_event().is_err());
    parser.feed(Bytes::from(encode(&[])));
    assert!(parser.next_event().is_err());
    assert!(parser.finish().is_err());
}

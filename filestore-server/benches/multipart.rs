//! Throughput of the multipart parser: one file of 64 MiB in chunks of 64 KiB; and the cost of a
//! Content-Type of 62 KB that is full of parameters.

use bytes::Bytes;
use divan::Bencher;
use divan::counter::BytesCount;
use filestore_server::multipart::{Boundary, Event, Limits, Parser, boundary_of};

const BODY_BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 64 << 10;
const BOUNDARY: &str = "----WebKitFormBoundary7MA4YWxkTrZu0gW";

fn main() {
    divan::main();
}

/// Makes the chunks of a form with one file, whose bytes repeat `pattern`.
fn chunks(pattern: &[u8]) -> Vec<Bytes> {
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
    );
    let data: Vec<u8> = pattern.iter().copied().cycle().take(BODY_BYTES).collect();
    let end = format!("\r\n--{BOUNDARY}--\r\n");
    let body = Bytes::from([head.as_bytes(), &data, end.as_bytes()].concat());
    (0..body.len())
        .step_by(CHUNK_BYTES)
        .map(|at| body.slice(at..body.len().min(at + CHUNK_BYTES)))
        .collect()
}

fn parse(chunks: &[Bytes]) -> usize {
    let mut parser =
        Parser::new(&Boundary::new(BOUNDARY).expect("a good boundary"), Limits::default());
    let mut bytes = 0;

    for chunk in chunks {
        parser.feed(chunk.clone());
        while let Some(event) = parser.next_event().expect("a good form") {
            if let Event::Data(data) = event {
                bytes += data.len();
            }
        }
    }
    bytes
}

fn run(bencher: Bencher<'_, '_>, pattern: &[u8]) {
    let chunks = chunks(pattern);
    bencher.counter(BytesCount::new(BODY_BYTES)).bench_local(|| parse(divan::black_box(&chunks)));
}

#[divan::bench]
fn noise(bencher: Bencher<'_, '_>) {
    let mut state = 1u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(1 << 20)
    .collect();
    run(bencher, &noise);
}

#[divan::bench]
fn text(bencher: Bencher<'_, '_>) {
    run(bencher, b"the quick brown fox jumps over the lazy dog\r\n");
}

#[divan::bench]
fn near_boundaries(bencher: Bencher<'_, '_>) {
    run(bencher, &format!("\r\n--{}", &BOUNDARY[..BOUNDARY.len() - 1]).into_bytes());
}

#[divan::bench]
fn a_crowd_of_parameters(bencher: Bencher<'_, '_>) {
    let crowd: Vec<_> = (0..9500).map(|n| format!(";{n:x}=a")).collect();
    let crowd = crowd.concat();
    let header = format!("multipart/form-data{crowd};boundary=x");
    bencher.bench_local(|| boundary_of(divan::black_box(&header)).is_err());
}

#![no_main]

use filestore_pictures_fuzz::moving;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let is_one_that_moves = [&b"GIF8"[..], b"\x89PNG", b"RIFF"];
    if !is_one_that_moves.iter().any(|magic| bytes.starts_with(magic)) {
        return Corpus::Reject;
    }
    moving(bytes);
    Corpus::Keep
});

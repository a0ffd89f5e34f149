#![no_main]

use filestore_pictures_fuzz::variants;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if !bytes.starts_with(b"GIF8") {
        return Corpus::Reject;
    }
    variants(bytes);
    Corpus::Keep
});

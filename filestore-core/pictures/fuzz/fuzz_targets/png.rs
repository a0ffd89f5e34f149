#![no_main]

use filestore_pictures_fuzz::{variants, with_checksums};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if !bytes.starts_with(b"\x89PNG") {
        return Corpus::Reject;
    }
    variants(bytes);
    variants(&with_checksums(bytes));
    Corpus::Keep
});

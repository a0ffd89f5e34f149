#![no_main]

use filestore_fuzz::{forgive_zune_jpeg, variants};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(init: forgive_zune_jpeg(), |bytes: &[u8]| -> Corpus {
    if !bytes.starts_with(b"\xFF\xD8\xFF") {
        return Corpus::Reject;
    }
    variants(bytes);
    Corpus::Keep
});

#![no_main]

use filestore_pictures_fuzz::variants;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| variants(bytes));

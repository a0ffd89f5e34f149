#![no_main]

use filestore_pictures_fuzz::header;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| header(bytes));

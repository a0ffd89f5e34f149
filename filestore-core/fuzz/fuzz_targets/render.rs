#![no_main]

use filestore_fuzz::{forgive_zune_jpeg, variants};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: forgive_zune_jpeg(), |bytes: &[u8]| variants(bytes));

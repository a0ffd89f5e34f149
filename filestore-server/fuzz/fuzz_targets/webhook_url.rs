#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| filestore_server_fuzz::webhook_url(bytes));

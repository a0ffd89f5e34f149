//! An S3 bucket for the browser: the server of `tests/support/s3` in a process of its own.
//!
//! Prints a `[[providers]]` table for it, and an empty line, once it listens. Ends with its standard input.

use std::io::Read as _;

use filestore_workspace::S3Server;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(S3Server::start());

    println!(
        "[[providers]]\ncode = \"bucket\"\nname = \"Bucket\"\nscheme = \"s3\"\n\n[providers.options]"
    );
    for (option, value) in [
        ("endpoint", server.endpoint().as_str()),
        ("region", server.region()),
        ("bucket", server.bucket()),
        ("access_key_id", server.access_key()),
        ("secret_access_key", server.secret_key()),
        ("disable_config_load", "true"),
    ] {
        println!("{option} = \"{value}\"");
    }
    println!();

    std::io::stdin().read_to_end(&mut Vec::new()).expect("standard input ends");
}

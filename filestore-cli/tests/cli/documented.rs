//! The pages in `tests/cmd`: documentation whose every command runs. `[..]` stands for what differs
//! from run to run. `TRYCMD=overwrite` rewrites them.

use crate::support::{Bench, Way};

#[test]
fn the_pages_say_what_happens() {
    let bench = Bench::new(Way::Url);
    trycmd::TestCases::new()
        .default_bin_name("filestore")
        .env("XDG_STATE_HOME", bench.path(".state").to_str().unwrap())
        .env("COLUMNS", "100")
        .case("tests/cmd/*.md");
    trycmd::TestCases::new()
        .default_bin_name("filestore")
        .env("FILESTORE_URL", bench.url())
        .env("COLUMNS", "100")
        .case("tests/cmd/server/*.md");
}

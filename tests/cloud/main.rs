//! CLOUD providers, against an S3 server in this process.

#[path = "../support/clock.rs"]
mod clock;
mod s3_server;
mod provider;
mod suite;
mod faults;
mod lanes;
mod outage;
mod abandoned;
mod part_uploads;
mod backups;
mod status;
mod crash;

use filestore_workspace::{Remote, S3Server};

async fn s3() -> (Remote, Remote, S3Server) {
    let server = S3Server::start().await;
    (Remote::at(&server), Remote::at(&server), server)
}

provider_suite!(s3);
provider_suite!(s3: part_uploads { what_a_killed_process_left_is_aborted_after_a_day, });

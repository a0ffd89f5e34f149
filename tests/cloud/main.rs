//! CLOUD providers, against an S3 server in this process.

mod s3_server;
mod provider;

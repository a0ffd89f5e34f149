//! The command line as its users meet it: the built binary, on real stores and real servers.

mod support;
mod commands;
mod names;
mod modes;
mod backups;
mod metadata;
mod receipts;
mod explaining;
mod following;
mod clouds;
mod recursive;
mod plans;
mod tables;
mod environment;
mod tls;
mod process;
mod stopped;
mod pending;
mod uploads;
mod hostile;
mod documented;
mod recipes;

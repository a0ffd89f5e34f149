//! The command line as its users meet it: the built binary, on real stores and real servers.

mod support;
mod commands;
mod names;
mod backups;
mod metadata;
mod receipts;
mod clouds;
mod recursive;
mod process;
mod stopped;
mod hostile;
mod documented;

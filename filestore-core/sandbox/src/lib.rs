#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod limits;
mod walls;
mod launch;
mod scratch;
mod tree;
mod watch;
mod killer;
mod sandbox;
#[cfg(target_os = "linux")]
mod launcher;

pub use error::{Error, ErrorKind, Result};
pub use killer::Killer;
pub use launch::{LAUNCHER_ARGUMENT, launch};
pub use limits::Limits;
pub use sandbox::Sandbox;
pub use scratch::Scratch;
pub use tree::remove_tree;
pub use walls::{Landlock, Walls};

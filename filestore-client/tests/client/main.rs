//! The client against servers that misbehave in every way a network can.

mod script;

mod calls;
mod downloads;
mod redirects;
mod uploads;

//! The client against servers that misbehave in every way a network can.

mod script;

mod calls;
mod configured;
mod downloads;
mod outage;
mod redirects;
mod resumable;
mod tls;
mod uploads;

#![doc = include_str!("../README.md")]

pub mod client;
pub mod reactor;
pub mod tls;
pub mod wire;

pub use client::{Client, Error, IMap, Operation, Status};
pub use reactor::{Config, ConnectError, Failure};
pub use wire::Object;

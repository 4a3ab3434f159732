//! A smart Hazelcast client: Open Binary Client Protocol 2.x, direct routing, many operations in flight.
pub mod reactor;
pub mod wire;

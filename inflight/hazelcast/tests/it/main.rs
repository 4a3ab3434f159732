//! The client against real members, and against peers that are none.

mod allocations;
mod faults;
mod maps;
mod member;
mod not_members;
mod three_members;

//! The program as a whole: its invariants, and the command line as users see it.
//!
//! Loads are small and holds short, and nothing is asserted that a busy machine could change: no late shares, no
//! latencies. What must hold everywhere: structure, conservation, messages, exit codes, and that nothing is left
//! behind.

mod adversary;
mod again;
mod agents;
mod arena_nodes;
mod bad_input;
mod bad_targets;
mod bench;
mod bench_clients;
mod bisect;
mod capacity;
mod chat;
mod chat_nodes;
mod ci;
mod consent;
mod credentials;
mod docs;
mod duel;
mod duel_libraries;
mod endings;
mod follow;
mod foreign_server;
mod forged;
mod grid;
mod http;
mod kills;
mod main_job;
mod marks;
mod metrics;
mod networks;
mod otlp;
mod output;
mod place;
mod printing;
mod profiles;
mod protobuf;
mod quota;
mod recordings;
mod rest;
mod scripts;
mod secrets;
mod selftest;
mod services;
mod serving;
mod terminal;
mod tick_logs;
mod tick_sources;
mod tidy;
mod tls_proxy;
mod urls;
mod viewing;

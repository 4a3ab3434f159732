//! A driver without a peer: every message is sent at once and nothing is ever received.
//!
//! It measures the rig itself: what the pacer and the recording cost, and how late they are, without a socket.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use crate::address::Address;
use crate::driver::{Broken, Closed, Driver, OpenError, Refused};
use crate::read_buffer::ReadBuffer;

/// A connection to nowhere.
#[derive(Debug, Default)]
pub struct Nowhere {
    is_closed: bool,
}

impl Driver for Nowhere {
    type Connecting = ();
    type Send<'a> = ();
    type Received<'a> = Infallible;

    fn begin_connect(_: &Address, _: Option<IpAddr>) -> Result<(), OpenError> {
        Ok(())
    }

    async fn open((): (), _: &Address) -> Result<Self, OpenError> {
        Ok(Nowhere::default())
    }

    fn send(&mut self, (): ()) -> Result<(), Refused> {
        Ok(())
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, _: &mut Context<'_>, _: &mut ReadBuffer) -> Poll<Result<usize, Closed>> {
        if self.is_closed { Poll::Ready(Err(Closed::ByPeer(None))) } else { Poll::Pending }
    }

    fn next(&mut self, _: &mut ReadBuffer) -> Option<Result<Infallible, Broken>> {
        None
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    fn unsent_bytes(&self) -> usize {
        0
    }
}

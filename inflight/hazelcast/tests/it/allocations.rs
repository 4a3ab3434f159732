//! The hot path allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hazelcast::Config;
use hazelcast::reactor::{Outcome, Reactor};
use hazelcast::wire::{Data, Key, MapName, Request};

use crate::member::shared;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator; a thread-local cell without a destructor is counted up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is also that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above, and the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn after_warm_up_operations_of_any_size_allocate_nothing() {
    let Some(address) = shared("allocations") else { return };
    let mut reactor: Reactor<u64> = Reactor::connect(Config::at(&address)).unwrap();
    let (map, key): (MapName, Key) = ("allocations".into(), Key::of("k"));
    for value_bytes in [3, 1000, 100_000] {
        let value = Data::of(&vec![7u8; value_bytes]);
        let set = Request::Set { map: map.clone(), key: key.clone(), value: value.clone(), ttl_ms: -1 };
        let get = Request::Get { map: map.clone(), key: key.clone() };
        let mut round = |count: u64| {
            for n in 0..count {
                reactor.submit(if n % 2 == 0 { set.clone() } else { get.clone() }, n);
                while reactor.in_flight() >= 100 {
                    reactor
                        .poll(None, |n, outcome| assert!(matches!(outcome, Outcome::Ok(_)), "{n}"))
                        .unwrap();
                }
            }
        };
        round(2000);
        let before = ALLOCATIONS.get();
        round(2000);
        // A buffer may still grow if more arrives at once than ever before; an operation allocates nothing.
        let allocations = ALLOCATIONS.get() - before;
        assert!(
            allocations <= 10,
            "{allocations} allocations in 2000 operations with values of {value_bytes} bytes"
        );
    }
}

//! All targets, by what they read.

mod drivers;

use crate::Target;

/// What a target has unless it says otherwise. A megabyte: the largest message of most protocols is 64 KiB.
const BASE: Target =
    Target { name: "", run: |_| {}, seeds: Vec::new, words: &[], bytes_max: 4096, heap_bytes_max: 1 << 20 };

/// The list, and a test for each entry: the entry's name is the function's.
macro_rules! targets {
    ($($module:ident :: $name:ident { $($field:ident : $value:expr),* $(,)? })*) => {
        /// All targets.
        pub const TARGETS: &[Target] =
            &[$(Target { name: stringify!($name), run: $module::$name, $($field: $value,)* ..BASE }),*];

        #[cfg(test)]
        mod tests {
            $(#[test]
            fn $name() {
                crate::check(stringify!($name));
            })*
        }
    };
}

targets! {
    drivers::websocket_client { seeds: drivers::websocket_seeds }
    drivers::websocket_answer { seeds: drivers::websocket_answers, words: drivers::HTTP_WORDS }
    drivers::resp_client { seeds: drivers::resp_seeds, words: &["\r\n", "$-1\r\n", "+OK\r\n", ":", "-", "$"] }
    drivers::http1_client { seeds: drivers::http1_seeds, words: drivers::HTTP_WORDS, heap_bytes_max: 6 << 20 }
}

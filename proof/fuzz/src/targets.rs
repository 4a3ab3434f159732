//! All targets, by what they read.

mod drivers;
mod files;
mod peers;
mod scripts;
mod servers;
mod stores;

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
    drivers::websocket_redirect { seeds: drivers::redirect_seeds, words: drivers::REDIRECT_WORDS }
    drivers::resp_client { seeds: drivers::resp_seeds, words: &["\r\n", "$-1\r\n", "+OK\r\n", ":", "-", "$"] }
    drivers::http1_client { seeds: drivers::http1_seeds, words: drivers::HTTP_WORDS, heap_bytes_max: 6 << 20 }
    drivers::http1_pieces { seeds: drivers::http1_seeds, words: drivers::HTTP_WORDS }
    peers::http2_client { seeds: peers::http2_seeds, heap_bytes_max: 8 << 20 }
    peers::http2_pieces { seeds: peers::http2_seeds, heap_bytes_max: 8 << 20 }
    peers::protobuf_envelope { seeds: peers::envelope_seeds }
    peers::framings { seeds: peers::framing_seeds }
    peers::chat_client { seeds: peers::chat_seeds, words: &["PING", "PONG", "MSG ", "PRIVMSG ", "* ", " :", "\r\n"] }
    peers::game_replies { seeds: peers::game_seeds, words: servers::JSON_WORDS }
    peers::hazelcast_session { seeds: peers::hazelcast_seeds }
    peers::hazelcast_data { seeds: peers::data_seeds }
    servers::websocket_server { seeds: servers::websocket_seeds }
    servers::websocket_upgrade { seeds: servers::upgrade_seeds, words: servers::UPGRADE_WORDS }
    servers::http_server { seeds: servers::http_seeds, words: servers::REQUEST_WORDS, heap_bytes_max: 64 << 20 }
    servers::chat_server { seeds: servers::chat_seeds, words: servers::CHAT_WORDS }
    servers::chat_nodes { seeds: servers::chat_node_seeds, words: servers::CHAT_NODE_WORDS }
    servers::arena_server { seeds: servers::arena_seeds, words: servers::JSON_WORDS }
    servers::arena_nodes { seeds: servers::arena_node_seeds, words: servers::JSON_WORDS, heap_bytes_max: 8 << 20 }
    servers::leaderboard_http { seeds: ::servers::fuzz::leaderboard_seeds, words: servers::REQUEST_WORDS, heap_bytes_max: 8 << 20 }
    servers::leaderboard_websocket { seeds: servers::leaderboard_websocket_seeds, heap_bytes_max: 8 << 20 }
    servers::leaderboard_grpc { seeds: servers::grpc_seeds, heap_bytes_max: 16 << 20 }
    servers::leaderboard_messages { seeds: servers::message_seeds, words: servers::JSON_WORDS }
    servers::leaderboard_log_frames { seeds: servers::log_frame_seeds }
    servers::leaderboard_log_records { seeds: servers::log_record_seeds, heap_bytes_max: 8 << 20 }
    servers::leaderboard_store { seeds: servers::store_seeds, words: &["\r\n", "*2\r\n", "$-1\r\n", ":", "+", "-"] }
    peers::agents_measured { seeds: peers::measured_seeds, heap_bytes_max: 8 << 20 }
    files::tick_log { seeds: files::tick_log_seeds, words: servers::JSON_WORDS, heap_bytes_max: 8 << 20 }
    files::metrics { seeds: files::metrics_seeds, words: files::METRICS_WORDS, heap_bytes_max: 8 << 20 }
    files::jvm_counters { seeds: files::jvm_counter_seeds, words: &["sun.gc.collector.0.time", "sun.os.hrt.frequency"] }
    files::socket_list { seeds: files::socket_list_seeds }
    files::histogram { seeds: files::histogram_seeds, heap_bytes_max: 8 << 20 }
    files::client_lines { seeds: files::client_seeds, words: servers::JSON_WORDS, heap_bytes_max: 16 << 20 }
    files::heap_snapshot { seeds: files::heap_seeds, words: files::HEAP_WORDS, heap_bytes_max: 4 << 20 }
    files::scenario { seeds: files::scenario_seeds, words: files::SCENARIO_WORDS, heap_bytes_max: 16 << 20 }
    files::schema_and_units { seeds: files::schema_seeds, words: files::SCHEMA_WORDS, heap_bytes_max: 32 << 20 }
    scripts::script_rows { seeds: scripts::row_seeds, words: scripts::ROW_WORDS, heap_bytes_max: 4 << 20 }
    scripts::script_source { seeds: scripts::source_seeds, words: scripts::SOURCE_WORDS, heap_bytes_max: 16 << 20 }
    files::recorded { seeds: files::recorded_seeds, words: files::RECORDED_WORDS, heap_bytes_max: 32 << 20 }
    stores::store_file { seeds: stores::store_file_seeds, heap_bytes_max: 16 << 20 }
    stores::store_rows { seeds: stores::store_row_seeds, words: servers::JSON_WORDS, heap_bytes_max: 8 << 20 }
    files::viewer_head { seeds: files::viewer_seeds, words: files::HEAD_WORDS }
}

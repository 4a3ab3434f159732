//! For `servers::fuzz`.

use super::Protocol;
use super::echo::Echo;

fn converse(protocol: Protocol, pieces: &[&[u8]]) -> Vec<u8> {
    let mut echo = Echo::new(protocol);
    let mut out = Vec::new();
    for piece in pieces {
        echo.hear(&mut piece.to_vec(), &mut out);
        // A client that takes everything at once.
        while echo.has_more() {
            let mut portion = Vec::new();
            echo.hear(&mut [], &mut portion);
            out.extend_from_slice(&portion);
        }
    }
    out
}

/// All that the null server answers over HTTP.
pub fn null_http(pieces: &[&[u8]]) -> Vec<u8> {
    converse(Protocol::Http, pieces)
}

/// All that the null server answers over WebSocket.
pub fn null_websocket(pieces: &[&[u8]]) -> Vec<u8> {
    converse(Protocol::WebSocket, pieces)
}

//! The inspector protocol of V8: commands and their results as JSON over a WebSocket on loopback.
//!
//! What comes from the other side is bounded, in bytes and in how deep it nests.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

use super::listening;

/// A profile has a line for each function that was seen, and an entry for each sample.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// A heap profile nests twice for each frame of its stacks, of which there are at most 128.
const DEPTH_MAX: usize = 1000;
const LIST_BYTES_MAX: usize = 1 << 20;
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);

/// A connection to the main thread of a process.
#[derive(Debug)]
pub(super) struct Inspector {
    socket: WebSocket<TcpStream>,
    sent: u64,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "webSocketDebuggerUrl")]
    url: Option<String>,
}

#[derive(Deserialize)]
struct Answer<T> {
    /// none of an event
    id: Option<u64>,
    result: Option<T>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

impl Inspector {
    /// Errors: what listens there is no inspector, or it has no connection left.
    pub(super) fn connect(address: SocketAddr) -> Result<Inspector, String> {
        let list = listening::get(address, "/json/list", CONNECTS_WITHIN, LIST_BYTES_MAX)?;
        let list: Vec<Listed> = serde_json::from_slice(&list).map_err(|_| "it is no inspector")?;
        let url = list.into_iter().filter(|one| one.kind == "node").find_map(|one| one.url);
        let url = url.ok_or("it lists nothing that can be inspected")?;
        // Where it is, is known; the URL may say another name for it.
        let path =
            url.strip_prefix("ws://").and_then(|rest| rest.split_once('/')).ok_or("its address is none")?.1;
        let stream =
            TcpStream::connect_timeout(&address, CONNECTS_WITHIN).map_err(|error| error.to_string())?;
        let timeout = Some(CONNECTS_WITHIN);
        stream
            .set_read_timeout(timeout)
            .and_then(|()| stream.set_write_timeout(timeout))
            .map_err(|error| error.to_string())?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let url = format!("ws://{address}/{path}");
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(config))
            .map_err(|error| format!("its WebSocket cannot be opened: {error}"))?;
        Ok(Inspector { socket, sent: 0 })
    }

    /// Sends a command and does not wait for its result. Returns its number.
    pub(super) fn send(&mut self, method: &str, params: &Value) -> Result<u64, String> {
        self.sent += 1;
        let text = json!({ "id": self.sent, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(text)).map_err(|error| error.to_string())?;
        Ok(self.sent)
    }

    /// The result of the command with this number; those before it are passed over. Errors: it failed, there is none in time.
    pub(super) fn result<T: DeserializeOwned>(&mut self, id: u64, patience: Duration) -> Result<T, String> {
        let until = Instant::now() + patience;
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    if let Some(result) = of_command(text.as_str(), id)? {
                        return Ok(result);
                    }
                }
                Ok(Message::Close(_)) => return Err("it closed the connection".to_owned()),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(error.to_string()),
            }
            if Instant::now() >= until {
                return Err(format!("no answer within {} s", patience.as_secs()));
            }
        }
    }

    /// Sends a command and waits until it is done. Errors: as `result`.
    pub(super) fn call(&mut self, method: &str, params: &Value, patience: Duration) -> Result<Value, String> {
        let id = self.send(method, params)?;
        self.result(id, patience)
    }

    /// Ends the connection; what the other side says to that is not waited for.
    pub(super) fn close(mut self) {
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

/// `None`: it is of another command, or an event.
fn of_command<T: DeserializeOwned>(text: &str, id: u64) -> Result<Option<T>, String> {
    #[derive(Deserialize)]
    struct Head {
        id: Option<u64>,
    }
    if depth(text.as_bytes()) > DEPTH_MAX {
        return Err(format!("its answer nests deeper than {DEPTH_MAX}"));
    }
    let broken = |error: serde_json::Error| format!("its answer cannot be read: {error}");
    // Results of other commands have other forms.
    let head: Head = deep(text).map_err(broken)?;
    if head.id != Some(id) {
        return Ok(None);
    }
    let answer: Answer<T> = deep(text).map_err(broken)?;
    debug_assert_eq!(answer.id, Some(id));
    match (answer.result, answer.error) {
        (_, Some(failure)) => Err(super::plain(&failure.message)),
        (Some(result), None) => Ok(Some(result)),
        (None, None) => Err("its answer has no result".to_owned()),
    }
}

/// JSON whose depth was checked. The usual limit is less than a stack has frames.
fn deep<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.disable_recursion_limit();
    T::deserialize(&mut json)
}

/// How deep objects and lists nest.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut is_string, mut is_escaped) = (0_usize, 0, false, false);
    for &byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' | b'[' if !is_string => depth += 1,
            b'}' | b']' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_its_command_and_a_failure_is_said() {
        for (text, expected) in [
            (r#"{"id":3,"result":{"a":1}}"#.to_owned(), Ok(Some(1))),
            (r#"{"id":2,"result":{"b":1}}"#.to_owned(), Ok(None)),
            (r#"{"method":"Runtime.x","params":{}}"#.to_owned(), Ok(None)),
            ("{\"id\":3,\"error\":{\"message\":\"no \\u001b[1msuch\"}}".to_owned(), Err("no  [1msuch")),
            (r#"{"id":3}"#.to_owned(), Err("no result")),
            (r#"{"id":3,"result":{"a":"#.to_owned(), Err("cannot be read")),
            (format!(r#"{{"id":3,"result":{}"#, "[".repeat(100_000)), Err("nests deeper")),
        ] {
            #[derive(Debug, Deserialize)]
            struct Result {
                a: u64,
            }
            let found = of_command::<Result>(&text, 3).map(|found| found.map(|found| found.a));
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected)),
                Err(why) => assert!(found.as_ref().is_err_and(|error| error.contains(why)), "{found:?}"),
            }
        }
    }

    #[test]
    fn brackets_in_texts_do_not_nest() {
        for (json, expected) in [("1", 0), (r#"{"a":[1,{"b":"[[[\"{{"}]}"#, 3), ("]]][", 1), ("", 0)] {
            assert_eq!(depth(json.as_bytes()), expected, "{json}");
        }
    }
}

//! What nodes say to each other through the broker. Pure.
//!
//! On a room's subject: lines with their numbers, or none, which says how far the numbers are. On the subject of all
//! nodes: who is there, which room a node has opened, and fences; on a node's own: the answers to its fences.
//! What anything else publishes on these subjects is not understood, and changes nothing.

use std::io::Write as _;

use memchr::memchr_iter;
use servers_shared::nats::NodeId;

use crate::words;

/// Where all nodes listen.
pub(super) const NODES: &str = "stepladder-chat.nodes";

/// Where one node alone listens.
pub(super) fn own_subject(node: NodeId) -> String {
    format!("stepladder-chat.node.{node}")
}

/// Where the nodes with members of a room listen. A point in a name would separate tokens of the subject.
pub(super) fn room_subject(room: &str) -> String {
    format!("stepladder-chat.room.{}", room.replace('.', "%2E"))
}

/// The front of a message on a room's subject; `count` lines follow it, each with its LF.
///
/// A node numbers the lines that are said to a room through it, from 0 when it opens the room. `opening` grows each time
/// that it opens one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(super) from: NodeId,
    pub(super) opening: u64,
    /// The number of the first line here: of the next one where there is none.
    pub(super) first: u64,
    pub(super) count: u32,
    /// Clients that are in the room through this node.
    pub(super) members: u32,
}

impl Front {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Front { from, opening, first, count, members } = self;
        let _ = writeln!(out, "L {from} {opening} {first} {count} {members}");
    }

    /// The front and the lines behind it; `None` for what no node says.
    pub(crate) fn read(payload: &[u8]) -> Option<(Front, &str)> {
        let text = std::str::from_utf8(payload).ok()?;
        let (front, lines) = text.split_once('\n')?;
        let words: Vec<&str> = front.split(' ').collect();
        let ["L", from, opening, first, count, members] = words[..] else { return None };
        let number = |word: &str| word.parse::<u64>().ok();
        let front = Front {
            from: node(from)?,
            opening: number(opening)?,
            first: number(first)?,
            count: count.parse().ok()?,
            members: members.parse().ok()?,
        };
        front.first.checked_add(u64::from(front.count))?;
        let ends = memchr_iter(b'\n', lines.as_bytes()).count();
        let is_whole = ends == front.count as usize && (lines.is_empty() || lines.ends_with('\n'));
        (is_whole && !lines.contains('\0')).then_some((front, lines))
    }
}

/// What is said on the subject of all nodes, or on one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word<'w> {
    /// It is there. `asks`: so should the others say who are.
    Here { name: &'w str, asks: bool },
    /// It has members in this room now: who else has should say how far its numbers are.
    Opened { room: &'w str },
    /// To be answered once everything before it has reached the rooms.
    Fence { number: u64 },
    /// The answer.
    Passed { number: u64 },
    /// It ends.
    Leaving,
}

impl<'w> Word<'w> {
    pub(crate) fn written(&self, from: NodeId) -> String {
        match self {
            Word::Here { name, asks: false } => format!("HERE {from} {name}"),
            Word::Here { name, asks: true } => format!("ASKS {from} {name}"),
            Word::Opened { room } => format!("OPENED {from} {room}"),
            Word::Fence { number } => format!("FENCE {from} {number}"),
            Word::Passed { number } => format!("PASSED {from} {number}"),
            Word::Leaving => format!("LEAVING {from}"),
        }
    }

    /// Who says what; `None` for what no node says.
    pub(crate) fn read(payload: &'w [u8]) -> Option<(NodeId, Word<'w>)> {
        let text = std::str::from_utf8(payload).ok()?;
        let words: Vec<&str> = text.split(' ').collect();
        let (verb, from, what) = match words[..] {
            [verb, from] => (verb, from, ""),
            [verb, from, what] => (verb, from, what),
            _ => return None,
        };
        let word = match verb {
            "HERE" | "ASKS" if words::is_name(what) => Word::Here { name: what, asks: verb == "ASKS" },
            "OPENED" if words::is_name(what) => Word::Opened { room: what },
            "FENCE" => Word::Fence { number: what.parse().ok()? },
            "PASSED" => Word::Passed { number: what.parse().ok()? },
            "LEAVING" if words.len() == 2 => Word::Leaving,
            _ => return None,
        };
        Some((node(from)?, word))
    }
}

fn node(word: &str) -> Option<NodeId> {
    let is_id = word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| u64::from_str_radix(word, 16).ok().map(NodeId)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRONT: Front = Front { from: NodeId(7), opening: 3, first: 40, count: 2, members: 9 };

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        FRONT.write(&mut out);
        out.extend_from_slice("größe\n\n".as_bytes());
        assert_eq!(Front::read(&out), Some((FRONT, "größe\n\n")));
        for word in [
            Word::Here { name: "a.b", asks: true },
            Word::Here { name: "a", asks: false },
            Word::Opened { room: "größe" },
            Word::Fence { number: u64::MAX },
            Word::Passed { number: 0 },
            Word::Leaving,
        ] {
            let written = word.written(NodeId(u64::MAX));
            assert_eq!(Word::read(written.as_bytes()), Some((NodeId(u64::MAX), word)), "{written}");
        }
    }

    #[test]
    fn what_others_publish_is_not_understood() {
        let id = NodeId(7);
        for payload in [
            String::new(),
            "hello\n".to_owned(),
            format!("L {id} 1 2 3"),
            format!("L {id} 1 2 1 4\n"),
            format!("L {id} 1 2 1 4\nno end"),
            format!("L {id} 1 2 1 4\na\nb\n"),
            format!("L {id} 1 2 1 4\na\0\n"),
            format!("L {id} 1 {} 1 4\na\n", u64::MAX),
            format!("L {id} 1 -2 0 4\n"),
            "L 7 1 2 0 4\n".to_owned(),
        ] {
            assert_eq!(Front::read(payload.as_bytes()), None, "{payload:?}");
        }
        for payload in [
            String::new(),
            "HERE".to_owned(),
            format!("HERE {id}"),
            format!("HERE {id} a b"),
            format!("HERE {id} a\u{1b}[2J"),
            format!("OPENED {id} two words"),
            format!("FENCE {id} x"),
            format!("LEAVING {id} now"),
            "LEAVING +000000000000007".to_owned(),
        ] {
            assert_eq!(Word::read(payload.as_bytes()), None, "{payload:?}");
        }
        assert_eq!(Front::read(b"\xff"), None);
        assert_eq!(Word::read(b"\xff"), None);
    }

    #[test]
    fn a_room_has_one_token_of_the_subject() {
        assert_eq!(room_subject("a..b"), "stepladder-chat.room.a%2E%2Eb");
        assert_eq!(room_subject("名前"), "stepladder-chat.room.名前");
    }
}

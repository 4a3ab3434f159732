//! The scripts that a store runs: each is one atomic step, and is called by the SHA-1 of its text.

use std::sync::LazyLock;

use super::resp::Command;

/// The scripts; the text of each is in `scripts/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Update,
    Bulk,
    DeleteMember,
    CreateBoard,
    DeleteBoard,
    Standings,
    Page,
    Board,
    Boards,
}

impl Script {
    pub(super) const ALL: [Script; 9] = [
        Script::Update,
        Script::Bulk,
        Script::DeleteMember,
        Script::CreateBoard,
        Script::DeleteBoard,
        Script::Standings,
        Script::Page,
        Script::Board,
        Script::Boards,
    ];

    fn pieces(self) -> &'static [&'static str] {
        const CHANGE: &str = include_str!("scripts/change.lua");
        const SCORES: &str = include_str!("scripts/scores.lua");
        match self {
            Script::Update => &[CHANGE, SCORES, include_str!("scripts/update.lua")],
            Script::Bulk => &[CHANGE, SCORES, include_str!("scripts/bulk.lua")],
            Script::DeleteMember => &[CHANGE, include_str!("scripts/delete_member.lua")],
            Script::CreateBoard => &[CHANGE, include_str!("scripts/create_board.lua")],
            Script::DeleteBoard => &[CHANGE, include_str!("scripts/delete_board.lua")],
            Script::Standings => &[include_str!("scripts/standings.lua")],
            Script::Page => &[include_str!("scripts/page.lua")],
            Script::Board => &[include_str!("scripts/board.lua")],
            Script::Boards => &[include_str!("scripts/boards.lua")],
        }
    }

    /// Appends the call with so many keys and arguments, which must follow in this order.
    pub(super) fn call(self, out: &mut Vec<u8>, keys: usize, arguments: usize) -> Command<'_> {
        let mut command = Command::begin(out, 3 + keys + arguments);
        command.word(b"EVALSHA").word(TEXTS[self as usize].sha1.as_bytes()).number(keys as u64);
        command
    }

    /// Appends the command that makes the server know the script.
    pub(super) fn load(self, out: &mut Vec<u8>) {
        let text = TEXTS[self as usize].text.as_bytes();
        Command::begin(out, 3).word(b"SCRIPT").word(b"LOAD").word(text);
    }
}

struct Text {
    text: String,
    /// In 40 hexadecimal digits.
    sha1: String,
}

static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| {
    let text = |script: Script| {
        let text = script.pieces().concat();
        let sha1 = sha1_smol::Sha1::from(&text).digest().to_string();
        Text { text, sha1 }
    };
    Script::ALL.map(text).into()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_is_found_under_its_own_place() {
        for (place, script) in Script::ALL.into_iter().enumerate() {
            assert_eq!(script as usize, place, "{script:?}");
            assert_eq!(TEXTS[place].text, script.pieces().concat());
            assert_eq!(TEXTS[place].sha1.len(), 40);
        }
    }
}

//! What each kind of request waits for: how the store's reply becomes the body of the answer, or a problem.

use super::super::problem::Problem;
use super::super::responder::{self, Responder};
use super::super::{json, planted};
use super::commands;
use super::replies::{Fields, Refused, Unexpected};
use leaderboard::{self, Score};
use servers_shared::fault::ThreadFaults;

/// What is made of the reply.
pub(super) enum Awaited {
    /// Not a reply is waited for, but an earlier answer.
    Nothing,
    Update {
        board: String,
        member: String,
    },
    Member {
        board: String,
        member: String,
    },
    DeleteMember {
        board: String,
        member: String,
    },
    /// The names of boards, and of the members that are updated on each.
    Bulk(Vec<(String, Names)>),
    Ranks {
        board: String,
        members: Names,
    },
    Page {
        board: String,
        member: String,
    },
    Board {
        board: String,
    },
    CreateBoard {
        board: String,
        rules: leaderboard::Options,
    },
    Boards {
        limit: usize,
    },
    DeleteBoard {
        board: String,
    },
    Health,
}

/// Many names in two allocations.
#[derive(Default)]
pub(super) struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str>) -> Names {
        let mut all = Names::default();
        for name in names {
            all.text.push_str(name);
            all.ends.push(all.text.len());
        }
        all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let mut from = 0;
        self.ends.iter().map(move |end| &self.text[std::mem::replace(&mut from, *end)..*end])
    }
}

impl Awaited {
    /// Writes the body.
    pub(super) fn write(
        &self,
        mut fields: Fields<'_>,
        responder: &mut Responder,
        faults: &mut ThreadFaults,
    ) -> Result<(), Unexpected> {
        match self {
            Awaited::Update { member, .. } => {
                let (score, rank, members) = (fields.score()?, fields.whole()?, fields.whole()?);
                let (_sequence, _tie) = (fields.whole()?, fields.text()?);
                responder.count_updates(1);
                responder.put_standing(member, &score, (rank, members), faults);
            }
            Awaited::Member { member, .. } => {
                let members = fields.whole()?;
                let standing = fields.standing()?.ok_or(Unexpected::Refused(Refused::NoMember))?;
                responder.put_standing(member, &standing.score, (standing.rank, members), faults);
            }
            Awaited::DeleteMember { member, .. } => {
                let (score, members) = (fields.score()?, fields.whole()?);
                fields.whole()?;
                responder.body.push(b'{');
                json::put_member(&mut responder.body, member, &score);
                responder.put_members(members);
            }
            Awaited::Bulk(parts) => {
                for _ in parts {
                    fields.whole()?;
                }
                write_bulk(parts, &mut fields, responder, faults)?;
            }
            Awaited::Ranks { members, .. } => {
                fields.whole()?;
                responder.body.extend_from_slice(b"{\"standings\":[");
                for (number, name) in members.iter().enumerate() {
                    let body = &mut responder.body;
                    if number > 0 {
                        body.push(b',');
                    }
                    match fields.standing()? {
                        None => body.extend_from_slice(b"null"),
                        Some(standing) => {
                            let rank = planted::rank(standing.rank, faults);
                            json::put_ranked(body, name, &standing.score, rank);
                        }
                    }
                }
                responder.body.extend_from_slice(b"]}");
            }
            Awaited::Page { .. } => {
                json::put_page(&mut responder.body, &fields.page()?);
                return Ok(());
            }
            Awaited::Board { board } => {
                let (rules, members) = (fields.rules()?, fields.whole()?);
                responder::put_board(&mut responder.body, board, rules, members);
            }
            Awaited::CreateBoard { board, rules } => {
                responder::put_board(&mut responder.body, board, *rules, 0);
            }
            Awaited::Boards { limit } => {
                let mut boards = Vec::new();
                while let Some(name) = fields.text_unless_over()? {
                    boards.push((name, fields.rules()?, fields.whole()?));
                }
                let has_more = boards.len() > *limit;
                boards.truncate(*limit);
                let body = &mut responder.body;
                responder::put_boards(body, boards.iter().copied(), has_more);
            }
            Awaited::DeleteBoard { .. } => {}
            Awaited::Nothing | Awaited::Health => return Err(Unexpected::Odd),
        }
        fields.end()
    }

    pub(super) fn problem(&self, refused: Refused) -> Problem {
        let (board, member) = match self {
            Awaited::Update { board, member }
            | Awaited::Member { board, member }
            | Awaited::DeleteMember { board, member }
            | Awaited::Page { board, member } => (&**board, &**member),
            Awaited::Ranks { board, .. }
            | Awaited::Board { board }
            | Awaited::CreateBoard { board, .. }
            | Awaited::DeleteBoard { board } => (&**board, ""),
            Awaited::Bulk(_) | Awaited::Boards { .. } | Awaited::Health | Awaited::Nothing => ("", ""),
        };
        match (refused, self) {
            (Refused::NoBoard { part }, Awaited::Bulk(parts)) => {
                Problem::no_board(parts.get(part).map_or("", |(name, _)| name)).at_board(part)
            }
            (Refused::NoBoard { .. }, _) => Problem::no_board(board),
            (Refused::Beyond { part, item }, Awaited::Bulk(_)) => {
                commands::beyond().at_board(part).at_item(item)
            }
            (Refused::Beyond { .. }, _) => commands::beyond(),
            (Refused::NoMember, _) => Problem::no_member(member),
            (Refused::NameTaken, _) => leaderboard::BoardsError::NameTaken { name: board.to_owned() }.into(),
            (Refused::OtherRequest, _) => Problem::used_for_another_request(),
            (Refused::NonceUsed, _) => Problem::nonce_used(),
        }
    }
}

fn write_bulk(
    parts: &[(String, Names)],
    fields: &mut Fields<'_>,
    responder: &mut Responder,
    faults: &mut ThreadFaults,
) -> Result<(), Unexpected> {
    let mut updates = 0;
    let body = &mut responder.body;
    body.extend_from_slice(b"{\"leaderboards\":[");
    for (number, (board, members)) in parts.iter().enumerate() {
        if number > 0 {
            body.push(b',');
        }
        body.extend_from_slice(b"{\"leaderboard\":");
        json::put_string(body, board);
        body.extend_from_slice(b",\"scores\":[");
        for (number, member) in members.iter().enumerate() {
            if number > 0 {
                body.push(b',');
            }
            let (score, rank): (Score, u64) = (fields.score()?, fields.whole()?);
            json::put_ranked(body, member, &score, planted::rank(rank, faults));
            updates += 1;
        }
        body.extend_from_slice(b"]}");
    }
    body.extend_from_slice(b"]}");
    responder.count_updates(updates);
    Ok(())
}

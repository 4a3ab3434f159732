//! For `crate::fuzz`.

use super::dialect::{Dialect, Json, Messages, Over};

/// What each way of asking makes of a reply: how many of the readings took it.
pub fn leaderboard_reply(body: &[u8]) -> usize {
    thread_local! {
        static DIALECTS: [Dialect; 3] = [
            Dialect::Json(Json::new("", "main")),
            Dialect::of_messages(Messages::new(Over::WebSocket, "main")),
            Dialect::of_messages(Messages::new(Over::Grpc, "main")),
        ];
    }
    DIALECTS.with(|dialects| {
        let read = |dialect: &Dialect| {
            let _ = (dialect.refusal_of_bulk(body), dialect.shown(body));
            usize::from(dialect.standing(body).is_ok())
                + usize::from(dialect.bulk(body).is_ok())
                + usize::from(dialect.page(body).is_ok_and(|page| page.check().is_ok()))
                + usize::from(dialect.standings(body).is_ok())
        };
        dialects.iter().map(read).sum()
    })
}

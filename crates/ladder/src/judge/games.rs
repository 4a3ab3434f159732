//! Whether games end: a server can start every game, keep its ticks perfectly and never end one.
//!
//! Players see how their games end. A game without a result is one whose stop never came (`bots.longest_game`) or whose
//! stops carried an error. Until that time is up, a running game proves nothing by itself, so it is compared with the
//! games that were played to the end.

use measure::{Role, ServerCounter, Trial};

use super::rules::{OFFERED_SHARE_LEAST, OPEN_SHARE_LEAST, first_words};
use super::{Case, DISTURBED, Ruling, Verdict};
use crate::wording::{show_many, show_ns, show_number};

/// Length of a hold, in mean games, from which a game that ran through all of it counts as one that does not end.
const HOLD_OF_GAMES_LEAST: f64 = 2.0;
/// Games that the server reports, for each that its clients saw end: a server may count a game once for each player.
const COUNTED_TWICE: u64 = 2;

/// A hold that is shorter than this may well lie within one game: with the usual shots a game takes 10 to 12 s.
const HOLD_WITH_AN_END_S: f64 = 20.0;

const UNENDED: &str = "games.unended";
const MISSING_STOP: &str = "missing stop";

/// Games that the server does not end, or that end without a result.
pub(super) fn unended(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    if !trial.head.counts_games() {
        return None;
    }
    let [played, failed] = [Role::GamesPlayed, Role::GamesFailed].map(|role| counted(trial, role));
    if failed as f64 > (1.0 - OFFERED_SHARE_LEAST) * (played + failed) as f64 {
        let reason = format!(
            "{} of {} games ended without a result: no stop within bots.longest_game, or one with an error{}",
            show_many(failed),
            show_many(played + failed),
            first_words(trial, MISSING_STOP),
        );
        return Some(unless_disturbed(case, reason, played > 0));
    }
    let (games, hold) = (trial.games.filter(|games| games.played > 0)?, trial.hold.as_ref()?);
    let mean_s = games.played_ms as f64 / 1e3 / games.played as f64;
    let is_long_enough = hold.seconds() >= HOLD_OF_GAMES_LEAST * mean_s;
    if !is_long_enough || games.unending as f64 <= (1.0 - OPEN_SHARE_LEAST) * trial.head.load {
        return None;
    }
    let reason = format!(
        "{} of {} games ran through the whole hold of {} without an end, although those that were played to their end took \
         {} on average",
        show_many(games.unending),
        show_number(trial.head.load),
        show_ns(hold.seconds() * 1e9),
        show_ns(mean_s * 1e9),
    );
    Some(unless_disturbed(case, reason, played > 0))
}

/// A disturbance can delay games; it does not explain that none ends.
fn unless_disturbed(case: &Case<'_>, reason: String, some_ended: bool) -> Ruling {
    if case.disturbance.any() && some_ended {
        let reason = format!("{reason}, and that may not be the server: {}", case.disturbance.culprit());
        return Ruling::new(Verdict::Inconclusive, DISTURBED, reason);
    }
    Ruling::new(Verdict::Fail, UNENDED, reason)
}

/// The server's log reports games that its players did not see end.
pub(super) fn contradicted(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let server = trial.told(ServerCounter::GamesPlayed).filter(|_| trial.head.counts_games())?;
    let clients = counted(trial, Role::GamesPlayed) + counted(trial, Role::GamesFailed);
    // Games that began together end together, but the log and the players may place that on different sides of the
    // hold's edge.
    let most = clients.saturating_add(trial.head.load as u64).saturating_mul(COUNTED_TWICE);
    if server <= most {
        return None;
    }
    let reason = format!(
        "inconsistent: {} games were played in the hold by the server's log, and its clients saw {} end; look for other \
         clients of the server, or for a server that does not tell the truth",
        show_many(server),
        show_many(clients),
    );
    Some(Ruling::new(Verdict::Inconclusive, "inconsistent", reason))
}

/// No game ended at all, in a hold that is longer than games usually take: whether the server can end one is not known.
pub(super) fn none_ended(case: &Case<'_>) -> Option<Ruling> {
    let held_s = none_ended_in_s(case.trial)?;
    if held_s < HOLD_WITH_AN_END_S {
        return None;
    }
    let reason = "no game was played to its end, neither in the hold nor before it, so it is not known whether the server \
                  ends games; hold longer than a game lasts"
        .to_owned();
    Some(Ruling::new(Verdict::Inconclusive, UNENDED, reason))
}

/// Of a hold so short that no game could be expected to end, for people.
pub(super) fn remark(trial: &Trial) -> Option<String> {
    none_ended_in_s(trial).filter(|held_s| *held_s < HOLD_WITH_AN_END_S)?;
    Some("no game was played to its end, so nothing says that the server ends games".to_owned())
}

/// The length of a hold in which games were played but none ended, neither in it nor before.
fn none_ended_in_s(trial: &Trial) -> Option<f64> {
    trial.games.filter(|games| games.played == 0 && trial.head.counts_games())?;
    trial.hold.as_ref().map(measure::Hold::seconds)
}

fn counted(trial: &Trial, role: Role) -> u64 {
    trial.counts(role).sum()
}

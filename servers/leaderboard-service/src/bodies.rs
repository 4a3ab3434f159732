//! Request bodies as JSON. Text is borrowed from the request if it has no escapes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

use super::problem::Problem;
use super::unix_s;
use leaderboard::{self, Direction, Mode, Schedule, Score, ScoreError, TieRule, Update};

/// Reads a body. Errors: it is no JSON, or not what is wanted.
///
/// Whether it is UTF-8 is asked once for all of it, not for each of its many short texts.
pub(super) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Problem> {
    Ok(match std::str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text)?,
        // Refused as well, with the position.
        Err(_) => serde_json::from_slice(body)?,
    })
}

/// `POST /leaderboards`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewBoard {
    pub(super) name: Option<String>,
    direction: Option<Text>,
    ties: Option<Text>,
}

type Text = Box<str>;

impl NewBoard {
    /// Errors: a direction or a tie rule that does not exist.
    pub(super) fn options(&self) -> Result<leaderboard::Options, Problem> {
        let wrong = |message| Problem::new(422, message);
        Ok(leaderboard::Options {
            direction: self
                .direction
                .as_deref()
                .map_or(Ok(Direction::default()), direction)
                .map_err(wrong)?,
            ties: self.ties.as_deref().map_or(Ok(TieRule::default()), ties).map_err(wrong)?,
            seed: None,
        })
    }
}

/// `PUT /leaderboards/{board}/members/{member}/metadata`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) metadata: Name<'a>,
}

/// `POST /leaderboards/{board}/seasons`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSeason<'a> {
    #[serde(borrow)]
    pub(super) name: Name<'a>,
}

/// `PUT /leaderboards/{board}/schedule`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSchedule {
    next_end_s: u64,
    every_s: u64,
}

/// Ten years, s.
pub(super) const EVERY_S_MAX: u64 = 315_576_000;

/// The year 9999, s since the epoch.
pub(super) const END_S_MAX: u64 = 253_402_300_799;

impl NewSchedule {
    /// Errors: an end that is past or too far away, no time between ends or too much.
    pub(super) fn schedule(&self) -> Result<Schedule, Problem> {
        let (next_end_s, every_s, now_s) = (self.next_end_s, self.every_s, unix_s());
        if !(now_s..=END_S_MAX).contains(&next_end_s) {
            let detail = format!("next_end_s is {now_s} (now) to {END_S_MAX}, not {next_end_s}");
            return Err(Problem::new(422, detail));
        }
        if !(1..=EVERY_S_MAX).contains(&every_s) {
            return Err(Problem::new(422, format!("every_s is 1 to {EVERY_S_MAX}, not {every_s}")));
        }
        Ok(Schedule { next_end_s, every_s })
    }
}

/// `POST /leaderboards/{board}/ranks`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Members<'a> {
    #[serde(borrow)]
    pub(super) members: Vec<Name<'a>>,
}

/// `POST /bulk`
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bulk<'a> {
    #[serde(borrow)]
    pub(super) leaderboards: Vec<Part<'a>>,
}

/// What a bulk does to one leaderboard.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) leaderboard: Name<'a>,
    scores: Vec<Item<'a>>,
}

/// Fields that are missing are reported with the item's place, so they are optional here.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Item<'a> {
    #[serde(borrow)]
    member: Option<Name<'a>>,
    score: Option<Given>,
    mode: Option<Name<'a>>,
}

/// A text, borrowed if possible. A separate type, since `Cow` is only borrowed as a field, not in a list.
pub(super) struct Name<'a>(pub(super) Cow<'a, str>);

/// A score as a string or a whole number, or what is wrong with it.
struct Given(Result<Score, ScoreError>);

impl Part<'_> {
    /// Errors: the first item that is wrong.
    pub(super) fn updates(&self) -> Result<Vec<Update<'_>>, Problem> {
        let mut updates = Vec::with_capacity(self.scores.len());
        for (place, item) in self.scores.iter().enumerate() {
            updates.push(item.update().map_err(|problem| problem.at_item(place))?);
        }
        Ok(updates)
    }

    pub(super) fn count(&self) -> usize {
        self.scores.len()
    }
}

impl Item<'_> {
    fn update(&self) -> Result<Update<'_>, Problem> {
        let missing = |field| Problem::new(422, format!("the item has no {field}"));
        let Name(member) = self.member.as_ref().ok_or_else(|| missing("member"))?;
        let Given(score) = self.score.as_ref().ok_or_else(|| missing("score"))?;
        let Name(given) = self.mode.as_ref().ok_or_else(|| missing("mode"))?;
        leaderboard::check_member(member)?;
        Ok(Update { member, mode: mode(given)?, score: score.clone()? })
    }
}

/// Errors: a word that is no mode.
pub(super) fn mode(word: &str) -> Result<Mode, Problem> {
    Ok(match word {
        "increment" => Mode::Increment,
        "replace" => Mode::Replace,
        "best" => Mode::Best,
        "decrement" => Mode::Decrement,
        _ => {
            let known = "replace, increment, decrement and best";
            return Err(Problem::new(422, format!("there is no mode {word:?}; there are {known}")));
        }
    })
}

/// Errors: a word that is no direction.
pub(super) fn direction(word: &str) -> Result<Direction, String> {
    match word {
        "descending" => Ok(Direction::Descending),
        "ascending" => Ok(Direction::Ascending),
        _ => Err(format!("there is no direction {word:?}; there are descending and ascending")),
    }
}

/// Errors: a word that is no tie rule.
pub(super) fn ties(word: &str) -> Result<TieRule, String> {
    match word {
        "random" => Ok(TieRule::Random),
        "first" => Ok(TieRule::First),
        "last" => Ok(TieRule::Last),
        _ => Err(format!("there is no tie rule {word:?}; there are random, first and last")),
    }
}

/// The inverse of `direction`.
pub(super) fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Descending => "descending",
        Direction::Ascending => "ascending",
    }
}

/// The inverse of `ties`.
pub(super) fn ties_word(ties: TieRule) -> &'static str {
    match ties {
        TieRule::Random => "random",
        TieRule::First => "first",
        TieRule::Last => "last",
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Name<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(Texts)
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Scores;
        impl Visitor<'_> for Scores {
            type Value = Given;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a score as a string or a whole number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Given, E> {
                Ok(Given(text.parse()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Given, E> {
                Ok(Given(Ok(number.into())))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Given, E> {
                Ok(Given(Ok(i128::from(number).into())))
            }

            /// `5.0` is a whole number of JSON. One with a fraction, or so large that it may have been rounded, is none.
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Given, E> {
                const EXACT_MOST: f64 = 9_007_199_254_740_991.0;
                let is_exact = number.fract() == 0.0 && number.abs() <= EXACT_MOST;
                Ok(Given(if is_exact {
                    Ok((number as i64).into())
                } else {
                    Err(ScoreError::NotADigit { at: 0 })
                }))
            }
        }
        from.deserialize_any(Scores)
    }
}

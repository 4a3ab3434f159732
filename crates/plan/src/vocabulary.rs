//! The words a plan may use, which of them are implemented, and the nearest of them to a misspelt one.

/// Built-in servers that `climb NAME` starts by itself.
pub const SUBJECTS: &[&str] = &crate::built_in::NAMES;
/// Built-in bots.
pub const BOTS: &[&str] = crate::workloads::NAMES;

/// The known word that `word` most likely means; `None` when nothing is near enough to be worth a guess.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.trim().to_lowercase();
    let length = word.chars().count();
    if length == 0 {
        return None;
    }
    // A third of the letters may differ: "areena" is arena, but "hello" is not "hold".
    let distance_max = (length / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| {
            let opens = length >= 3 && candidate.starts_with(&word);
            (if opens { 1 } else { strsim::osa_distance(&word, candidate) }, candidate)
        })
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a, b, c`
pub(crate) fn listed(words: &[&str]) -> String {
    words.join(", ")
}

/// `a, b or c`
pub(crate) fn listed_or(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_finds_its_word_and_another_word_finds_nothing() {
        let subjects = || SUBJECTS.iter().copied();
        for (word, found) in [
            ("areena", Some("arena")),
            ("Arena", Some("arena")),
            ("aern", None),
            ("aerna", Some("arena")),
            ("poll_loop", Some("poll-loop")),
            ("leader", Some("leaderboard")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, subjects()), found, "{word}");
        }
    }
}

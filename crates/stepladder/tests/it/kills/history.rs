//! SIGKILL of `bisect`: its working trees are removed, by its exit guard or by the next search, and the user's tree is
//! untouched.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bisect::{git, repository, start};
use crate::kills::{killed, kills, looked_at, note};
use crate::place::{Place, children, command_line, eventually, is_gone, send};

/// What is left of the search's trees: folders, and what git lists.
fn trees(place: &Place) -> Vec<String> {
    let mut left = place.files_ending("");
    left.retain(|name| name.starts_with("stepladder-bisect-"));
    let listed = git(&place.path("repository"), &["worktree", "list"]);
    left.extend(listed.lines().skip(1).map(str::to_owned));
    left
}

#[test]
fn a_bisection_that_is_killed_gives_its_trees_back() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for kill in 0..kills(2) {
        let place = Place::new();
        repository(&place, &["--tick-rate 90", "--tick-rate 90", "--tick-rate 30"]);
        let words = ["--good", "newest~2", "--figure", "response.p50", "--json", "run.json"];
        let running = start(&place, &[&words[..], &["--build", "sleep 0.2"]].concat());
        // Every other time the guard that removes them is killed first, so that the next search has to.
        let has_will = kill % 2 == 0;
        if !has_will {
            let is_will = |pid: &u32| command_line(*pid).contains("worktree remove");
            let will = eventually("its exit guard", || children(running.pid()).into_iter().find(is_will));
            send(will, libc::SIGKILL);
        }
        let met = killed(&place, running, Duration::from_secs(8), kill % 4 < 2, &mut random);
        let found = looked_at(&place, &met.said, &BTreeMap::new());
        let left = trees(&place);
        if !has_will {
            start(&place, &["--good", "newest~2", "--build", "false"]).finish().fails(2, &["does not build"]);
        }
        eventually("no tree is left", || trees(&place).is_empty().then_some(()));
        assert_eq!(git(&place.path("repository"), &["status", "--porcelain"]), "");
        eventually("no exit guard is left", || {
            let mut all = crate::place::processes();
            let mark = place.path("").display().to_string();
            all.all(|pid| is_gone(pid) || !command_line(pid).contains(&mark)).then_some(())
        });
        let by = if has_will { "its exit guard" } else { "the next search" };
        let met = format!("{}: {found}; {} trees left to {by}", met.when, left.len());
        note("bisect", seed, kill, &met);
    }
}

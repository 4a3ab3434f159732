//! Damaged files: recovery refuses them with the position or finds the earlier state; it never panics and never invents
//! data.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;

use super::disk::Disk;
use super::power_cuts::{Life, State, nothing, state};
use super::record::{self, Changes};
use super::recovery::{log_name, snapshot_name};
use super::simulated::SimulatedDisk;
use super::{Log, frames};
use leaderboard::{MAX_SEASONS, Options, Score};
use servers_shared::ServeError;

/// The files that a service has left, and all states that it has had.
struct Image {
    files: BTreeMap<String, Vec<u8>>,
    states: Vec<State>,
}

const IMAGES: u64 = 6;

fn images() -> &'static [Image] {
    static IMAGES_ONCE: OnceLock<Vec<Image>> = OnceLock::new();
    let image = |seed| {
        let disk = SimulatedDisk::default();
        disk.give_log_room(seed % 2 * 100);
        let life = Life::begin(&disk, seed, 400 + seed * 400).unwrap();
        life.live(150);
        let (_, states) = life.ended();
        let files = disk.names().unwrap().into_iter().map(|name| (name.clone(), disk.read(&name).unwrap()));
        Image { files: files.collect(), states }
    };
    IMAGES_ONCE.get_or_init(|| (0..IMAGES).map(image).collect())
}

/// One thing that happens to the files. Places are shares of a file's length, in 65,536ths.
#[derive(Clone, Debug)]
enum Damage {
    Flip {
        file: usize,
        at: u16,
        mask: u8,
    },
    Truncate {
        file: usize,
        at: u16,
    },
    /// Bytes of one file are in another, instead of its own or before them.
    Splice {
        from: usize,
        at: u16,
        bytes: usize,
        to: usize,
        place: u16,
        replaces: bool,
    },
    Remove {
        file: usize,
    },
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (0..8_usize, any::<u16>(), 1..=u8::MAX).prop_map(|(file, at, mask)| Damage::Flip { file, at, mask }),
        2 => (0..8_usize, any::<u16>()).prop_map(|(file, at)| Damage::Truncate { file, at }),
        3 => (0..8_usize, any::<u16>(), 0..200_usize, 0..8_usize, any::<u16>(), any::<bool>()).prop_map(
            |(from, at, bytes, to, place, replaces)| Damage::Splice { from, at, bytes, to, place, replaces }
        ),
        1 => (0..8_usize).prop_map(|file| Damage::Remove { file }),
    ]
}

fn place(bytes: &[u8], at: u16) -> usize {
    bytes.len() * usize::from(at) / 65_536
}

fn apply(files: &mut BTreeMap<String, Vec<u8>>, damage: &Damage) {
    let names: Vec<String> = files.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = |file: usize| names[file % names.len()].clone();
    match damage {
        Damage::Flip { file, at, mask } => {
            let Some(bytes) = files.get_mut(&name(*file)) else { return };
            let at = place(bytes, *at);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= mask;
            }
        }
        Damage::Truncate { file, at } => {
            let Some(bytes) = files.get_mut(&name(*file)) else { return };
            bytes.truncate(place(bytes, *at));
        }
        Damage::Splice { from, at, bytes, to, place: behind, replaces } => {
            let source = &files[&name(*from)];
            let at = place(source, *at);
            let spliced = source[at..(at + bytes).min(source.len())].to_vec();
            let Some(target) = files.get_mut(&name(*to)) else { return };
            let begin = place(target, *behind);
            let end = if *replaces { (begin + spliced.len()).min(target.len()) } else { begin };
            target.splice(begin..end, spliced);
        }
        Damage::Remove { file } => drop(files.remove(&name(*file))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_refused_or_lead_to_what_has_been(
        image in 0..IMAGES as usize,
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let image = &images()[image];
        let mut files = image.files.clone();
        damages.iter().for_each(|damage| apply(&mut files, damage));
        let disk = SimulatedDisk::default();
        files.iter().for_each(|(name, bytes)| disk.put(name, bytes.clone()));
        let kept = nothing();
        match Log::recover(Arc::new(disk), &kept, 0, 1 << 20) {
            Ok(_) => {
                // A truncated file may end before changes that a snapshot has for one board but not for others, so each
                // part is checked by itself.
                let found = state(&kept);
                let has_been = |part: &dyn Fn(&State) -> bool| image.states.iter().any(part);
                for board in &found.boards {
                    prop_assert!(has_been(&|state| state.boards.contains(board)), "invented: {board:?}");
                }
                for nonce in &found.nonces {
                    prop_assert!(has_been(&|state| state.nonces.contains(nonce)), "invented: {nonce:?}");
                }
                for (key, answer) in &found.answers {
                    prop_assert!(has_been(&|state| state.answers.get(key) == Some(answer)), "invented: {key:?}");
                }
            }
            Err(ServeError::DataCorrupt { path, offset }) => {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                prop_assert!(offset <= files[&name].len() as u64);
            }
            Err(ServeError::DataMissing { path }) => {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                prop_assert!(!files.contains_key(&name));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn any_bytes_are_read_as_records_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut changes = Changes::of(&bytes);
        while let Ok(Some(_)) = changes.next() {}
    }

    #[test]
    fn any_bytes_behind_a_header_are_frames_or_refused(
        bytes in prop::collection::vec(prop_oneof![Just(0xf5), Just(b'S'), Just(b'L'), Just(b'F'), any::<u8>()], 0..200),
    ) {
        let disk = SimulatedDisk::default();
        let file = disk.create("log").unwrap();
        frames::FrameWriter::begin(file, frames::FileKind::Log, 1).unwrap();
        let mut file = disk.read("log").unwrap();
        file.extend(&bytes);
        let mut payloads = 0;
        let _ = frames::read(&file, frames::FileKind::Log, 1, |_| {
            payloads += 1;
            true
        });
        prop_assert_eq!(payloads, 0, "no checksum is right by chance");
    }
}

/// As the property: what it must find.
#[test]
fn a_log_without_checksums_would_invent_updates() {
    let image = &images()[0];
    let is_invented = |at: usize| {
        let disk = SimulatedDisk::default();
        for (name, bytes) in &image.files {
            let mut bytes = bytes.clone();
            if name.starts_with("log-") && at < bytes.len() {
                bytes[at] ^= 1;
                frames::repair_checksums(&mut bytes);
            }
            disk.put(name, bytes);
        }
        let kept = nothing();
        Log::recover(Arc::new(disk), &kept, 0, 1 << 20).is_ok()
            && state(&kept)
                .boards
                .iter()
                .any(|board| !image.states.iter().any(|state| state.boards.contains(board)))
    };
    assert!((28..400).any(is_invented));
}

/// What recovery says of a board called `main` and these payloads of a log, whose path is returned as well.
fn refused(log: &[&[u8]]) -> (PathBuf, Option<ServeError>) {
    let disk = SimulatedDisk::default();
    let file = |name: &str, kind, payloads: &[&[u8]]| {
        let mut writer = frames::FrameWriter::begin(disk.create(name).unwrap(), kind, 1).unwrap();
        payloads.iter().for_each(|payload| writer.put(payload).unwrap());
        disk.path(name)
    };
    let mut main = Vec::new();
    record::put_create(&mut main, 1, &Options::default(), "main");
    record::put_end(&mut main, 1);
    file(&snapshot_name(1), frames::FileKind::Snapshot, &[&main]);
    let path = file(&log_name(1), frames::FileKind::Log, log);
    (path, Log::recover(Arc::new(disk), &nothing(), 0, 1 << 20).err())
}

#[test]
fn a_record_with_a_name_that_the_service_does_not_take_is_refused_with_its_place_and_the_reason() {
    let put = |member: &str, sequence| {
        let mut out = Vec::new();
        record::put_member(&mut out, (1, sequence), member, &Score::from(5_i64), 1, None);
        out
    };
    let good = put("ann", 1);
    for (member, reason) in [
        ("n".repeat(300), "a member's name has at most 256 bytes, not 300"),
        ("n".repeat(70_000), "a member's name has at most 256 bytes, not 70000"),
        (String::new(), "a member's name has at least one byte"),
    ] {
        // A complete log ends with the good record, and the log with the bad record is not accepted without it.
        let (log, refused) = refused(&[&good, &put(&member, 2), &put("bob", 3)]);
        let Some(ServeError::DataInvalid { path, offset, what }) = refused else { panic!("{refused:?}") };
        // After the file's header, the frame's and the first record.
        assert_eq!((path, offset), (log, 28 + 12 + good.len() as u64));
        assert!(what.contains(reason), "{what}");
    }
}

#[test]
fn the_end_of_a_season_that_the_service_would_have_refused_is_refused_with_its_place_and_the_reason() {
    let end = |sequence, season: &str| {
        let mut out = Vec::new();
        record::put_end_season(&mut out, (1, sequence), 100, season);
        out
    };
    let seasons = |count: u64| -> Vec<Vec<u8>> {
        (1..=count).map(|sequence| end(sequence, &format!("season {sequence}"))).collect()
    };
    let mut twice = seasons(2);
    twice.push(end(3, "season 1"));
    let too_many = seasons(MAX_SEASONS as u64 + 1);
    for (log, reason) in [
        (&twice, "a season called \"season 1\" is archived"),
        (&too_many, "the board has 1000 archived seasons"),
    ] {
        let payloads: Vec<&[u8]> = log.iter().map(Vec::as_slice).collect();
        let (good, last) = payloads.split_at(payloads.len() - 1);
        assert!(refused(good).1.is_none(), "those before it are taken");
        let bytes: usize = good.iter().map(|payload| 12 + payload.len()).sum();
        let (log, refused) = refused(&[good, last].concat());
        let Some(ServeError::DataInvalid { path, offset, what }) = refused else { panic!("{refused:?}") };
        assert_eq!((path, offset), (log, 28 + bytes as u64));
        assert!(what.contains(reason), "{what}");
    }
}

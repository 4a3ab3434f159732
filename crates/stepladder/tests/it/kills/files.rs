//! SIGKILL while a file is written: it is complete, absent, or unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::kills::{kills, note, readings, with_a_run};

/// Within the time that such a command takes on two cores, 15 to 30 ms.
fn soon(random: &mut fastrand::Rng) -> Duration {
    Duration::from_millis(random.u64(0..40))
}

#[test]
fn a_file_that_was_there_is_replaced_whole_or_not_at_all() {
    let place = with_a_run();
    let before = readings(&place);
    let outputs =
        [("export arena -o out", "out"), ("report arena -o out", "out"), ("show arena --json out", "out")];
    for (words, name) in outputs {
        place.write(name, "what was there before");
        assert_eq!(place.run(words.split(' ')).code, 0);
        let whole = fs::read(place.path(name)).expect("the output");
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for kill in 0..kills(2) {
            place.write(name, "what was there before");
            let running = place.start(words.split(' '));
            let after = soon(&mut random);
            std::thread::sleep(after);
            running.signal(libc::SIGKILL);
            running.finish();
            let found = fs::read(place.path(name)).expect("it is there");
            let is_new = found == whole;
            assert!(is_new || found == b"what was there before", "{words}, seed {seed}, kill {kill}");
            let met = if is_new { "replaced" } else { "as it was" };
            note(words, seed, kill, &format!("after {} ms: {met}", after.as_millis()));
        }
    }
    assert_eq!(readings(&place), before);
}

/// The files of a folder by name. Unfinished ones, which have no name yet, are left out.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let files = entries.map(|entry| entry.expect("an entry").path());
    let named = files.map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path));
    let whole = named.filter(|(name, _)| !(name.starts_with(".stepladder-") && name.ends_with(".part")));
    whole.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

#[test]
fn files_of_an_export_into_a_folder_are_whole_or_not_there() {
    let place = with_a_run();
    let before = readings(&place);
    for option in ["--csv", "--hdr"] {
        let whole = place.path(&format!("whole{option}"));
        let ran = place.run(["export".as_ref(), "arena".as_ref(), option.as_ref(), whole.as_os_str()]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let whole = contents(&whole);
        assert!(whole.len() > 1, "several files: {:?}", whole.keys());
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for kill in 0..kills(2) {
            let name = format!("out{option}-{kill}");
            let running = place.start(["export", "arena", option, &name]);
            let after = soon(&mut random);
            std::thread::sleep(after);
            running.signal(libc::SIGKILL);
            running.finish();
            let found = contents(&place.path(&name));
            for (file, bytes) in &found {
                assert!(whole.get(file) == Some(bytes), "{option} {file}, seed {seed}, kill {kill}");
            }
            let met = format!("after {} ms: {} of {} files", after.as_millis(), found.len(), whole.len());
            note(&format!("export {option}"), seed, kill, &met);
        }
    }
    assert_eq!(readings(&place), before);
}

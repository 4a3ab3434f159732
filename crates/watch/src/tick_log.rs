//! Follows a tick log that is still growing.
//!
//! It is polled once per second with plain reads; a file system watch would only add the exact moment. The file need
//! not exist yet. A log that was truncated or replaced is read from its start, and that is reported.
//! The server under test may own the file, so opening and reading it never block and always end.
//! Invariant: nothing is reported twice: each byte goes through `measure::ticklog` once.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use measure::ticklog::{LoggedSecond, Malformed, TickForm, TickLogReader, TickLogSummary};

use crate::files::{self, Accepts};

/// A tick log, followed.
#[derive(Debug)]
pub struct TickLog {
    path: PathBuf,
    opened: Option<Opened>,
    skip_present: bool,
    reader: TickLogReader,
    notices: Vec<TickLogNotice>,
    chunk: Vec<u8>,
}

#[derive(Debug)]
struct Opened {
    file: File,
    device: u64,
    inode: u64,
    offset: u64,
    /// we began in the middle of a line; it ends before anything is read
    inside_line: bool,
}

/// Something happened to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TickLogNotice {
    /// it is shorter than what was read already
    Truncated,
    /// another file has its name
    Replaced,
    /// the first line that could not be read
    Unreadable(Malformed),
}

impl std::fmt::Display for TickLogNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TickLogNotice::Truncated => {
                f.write_str("the tick log was cut short while it was read; it is read from its begin")
            }
            TickLogNotice::Replaced => {
                f.write_str("another tick log took the name of the one that was read; it is read too")
            }
            TickLogNotice::Unreadable(Malformed { line, reason }) => {
                write!(f, "line {line} of the file of ticks cannot be read: {reason}")
            }
        }
    }
}

const CHUNK_BYTES: usize = 64 << 10;
/// As much is read at once; the rest follows with the next poll. No server writes so much in a second.
const POLLED_BYTES_MAX: u64 = 256 << 20;

/// How many of the `length` bytes of a log are read now, when those before `offset` were.
fn to_read_now(length: u64, offset: u64) -> u64 {
    length.saturating_sub(offset).min(POLLED_BYTES_MAX)
}

impl TickLog {
    /// Follows a log from its begin. `tick_rate_hz` (> 0) gives the classes where the log does not tell its rate.
    pub fn from_begin(path: &Path, tick_rate_hz: f64) -> Self {
        TickLog {
            path: path.to_owned(),
            opened: None,
            skip_present: false,
            reader: TickLogReader::new(tick_rate_hz),
            notices: Vec::new(),
            chunk: vec![0; CHUNK_BYTES],
        }
    }

    /// Follows what is written from now on: the log of a server that ran before us.
    pub fn from_now(path: &Path, tick_rate_hz: f64) -> io::Result<Self> {
        let mut log = TickLog { skip_present: true, ..Self::from_begin(path, tick_rate_hz) };
        match log.open() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                log.skip_present = false;
                Ok(log)
            }
        }
    }

    /// The file is of this form; before anything is read. Of a table whose rows are followed from now on the header is read.
    /// Without a rate the intervals tell it. Errors: that cannot be read.
    pub fn with_form(self, form: TickForm, tick_rate_hz: Option<f64>) -> io::Result<Self> {
        let mut reader = TickLogReader::of(form, tick_rate_hz);
        if let Some(opened) = self.opened.as_ref().filter(|opened| opened.offset > 0) {
            let mut head = vec![0; CHUNK_BYTES.min(opened.offset as usize)];
            let count = opened.file.read_at(&mut head, 0)?;
            for line in
                head[..count].split_inclusive(|byte| *byte == b'\n').take_while(|line| line.ends_with(b"\n"))
            {
                if !reader.awaits_header() {
                    break;
                }
                reader.push(line);
            }
        }
        Ok(TickLog { reader, ..self })
    }

    /// Follows a file that has no name, from its begin. Errors: it cannot be looked at.
    pub fn of_unnamed(file: File, tick_rate_hz: f64) -> io::Result<Self> {
        let about = file.metadata()?;
        // No file has this path, so none can replace this one.
        let log = Self::from_begin(Path::new(""), tick_rate_hz);
        let opened = Opened { file, device: about.dev(), inode: about.ino(), offset: 0, inside_line: false };
        Ok(TickLog { opened: Some(opened), ..log })
    }

    /// The file; empty for one without a name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what is new and returns the seconds that are complete by now.
    ///
    /// `realtime_ms` is the present; a second of which nothing more can come is complete. A file that is not there
    /// yet is no error.
    pub fn poll(&mut self, realtime_ms: u64) -> io::Result<Vec<LoggedSecond>> {
        self.reader.read_at(realtime_ms);
        let read = self.read_on();
        self.reader.close_before(realtime_ms);
        self.notices.extend(self.reader.take_unreadable().map(TickLogNotice::Unreadable));
        match read {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(self.reader.take_seconds()),
        }
    }

    /// What makes seconds of its lines.
    pub(crate) fn reader(&mut self) -> &mut TickLogReader {
        &mut self.reader
    }

    /// Everything read so far.
    pub fn summary(&self) -> &TickLogSummary {
        self.reader.summary()
    }

    /// What happened to the file since the last call.
    pub fn take_notices(&mut self) -> Vec<TickLogNotice> {
        std::mem::take(&mut self.notices)
    }

    fn read_on(&mut self) -> io::Result<()> {
        if self.opened.is_none() {
            self.open()?;
        }
        self.read_to_end()?;
        // Only after the old file was read to its end, so that a rotated log loses nothing.
        if let (Some(opened), Ok(present)) = (&self.opened, fs::metadata(&self.path))
            && (present.dev(), present.ino()) != (opened.device, opened.inode)
        {
            self.begin_again(TickLogNotice::Replaced);
            self.open()?;
            self.read_to_end()?;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        let mut file = files::open(&self.path, Accepts::Files)?;
        let about = file.metadata()?;
        let mut offset = 0;
        let mut inside_line = false;
        if self.skip_present && about.len() > 0 {
            offset = file.seek(SeekFrom::Start(about.len() - 1))?;
            let mut last = [b'\n'];
            offset += file.read(&mut last)? as u64;
            inside_line = last != [b'\n'];
        }
        self.opened = Some(Opened { file, device: about.dev(), inode: about.ino(), offset, inside_line });
        Ok(())
    }

    fn read_to_end(&mut self) -> io::Result<()> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        let length = opened.file.metadata()?.len();
        if length < opened.offset {
            opened.file.seek(SeekFrom::Start(0))?;
            (opened.offset, opened.inside_line) = (0, false);
            self.begin_again(TickLogNotice::Truncated);
        }
        let Some(opened) = &mut self.opened else { return Ok(()) };
        let mut left = to_read_now(length, opened.offset);
        loop {
            let most = self.chunk.len().min(left as usize);
            let count = match opened.file.read(&mut self.chunk[..most]) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            opened.offset += count as u64;
            left -= count as u64;
            let mut chunk = &self.chunk[..count];
            if opened.inside_line {
                let Some(end) = chunk.iter().position(|&byte| byte == b'\n') else { continue };
                chunk = &chunk[end + 1..];
                opened.inside_line = false;
            }
            self.reader.push(chunk);
        }
    }

    fn begin_again(&mut self, notice: TickLogNotice) {
        self.reader.finish();
        self.notices.push(notice);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn line(time_ms: u64, on_time: u64) -> String {
        format!(r#"{{"time":{time_ms},"pid":1,"hostname":"h","title":"tickOnTime","count":{on_time}}}"#)
            + "\n"
    }

    fn on_time(seconds: &[LoggedSecond]) -> Vec<u64> {
        seconds.iter().map(|second| second.counts.on_time).collect()
    }

    #[test]
    fn a_log_that_does_not_exist_yet_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let mut log = TickLog::from_now(&path, 60.0).unwrap();
        assert_eq!(log.poll(1_000).unwrap(), []);
        fs::write(&path, line(2_000, 60)).unwrap();
        assert_eq!(on_time(&log.poll(2_100).unwrap()), [] as [u64; 0], "more of that second may come");
        assert_eq!(on_time(&log.poll(3_000).unwrap()), [60]);
    }

    #[test]
    fn what_stood_in_a_log_before_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let half = line(2_000, 2);
        fs::write(&path, line(1_000, 1) + &half[..20]).unwrap();
        let mut log = TickLog::from_now(&path, 60.0).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all((half[20..].to_owned() + &line(3_000, 3)).as_bytes()).unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [3]);
        assert_eq!(log.summary().malformed, 0);
    }

    #[test]
    fn the_header_of_a_table_that_is_followed_from_now_on_is_read_and_bad_lines_are_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frames.csv");
        fs::write(&path, "// a capture\nn,FrameTime\n1,16.6\n2,16.6\n").unwrap();
        let table = TickForm::Csv { column: None, unit: None };
        let mut log = TickLog::from_now(&path, 60.0).unwrap().with_form(table, Some(60.0)).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"3,16.7\n4,?\n5,?\n").unwrap();
        assert_eq!(log.poll(1_000).unwrap(), []);
        let said: Vec<String> = log.take_notices().iter().map(ToString::to_string).collect();
        assert_eq!(said, ["line 4 of the file of ticks cannot be read: its interval is \"?\", not a number"]);
        file.write_all(b"6,?\n7,16.7\n").unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [2]);
        assert_eq!(log.take_notices(), []);
    }

    #[test]
    fn a_log_that_is_cut_short_is_read_from_its_begin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let mut log = TickLog::from_begin(&path, 60.0);
        fs::write(&path, line(1_000, 1) + &line(2_000, 2)).unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [1, 2]);
        fs::write(&path, line(9_000, 9)).unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [9]);
        assert_eq!(log.take_notices(), [TickLogNotice::Truncated]);
    }

    #[test]
    fn a_log_that_is_rotated_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let mut log = TickLog::from_begin(&path, 60.0);
        fs::write(&path, line(1_000, 1)).unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [1]);
        fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(line(2_000, 2).as_bytes())
            .unwrap();
        fs::rename(&path, folder.path().join("game.log.1")).unwrap();
        fs::write(&path, line(3_000, 3)).unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [2, 3]);
        assert_eq!(log.take_notices(), [TickLogNotice::Replaced]);
        assert_eq!(log.poll(u64::MAX).unwrap(), []);
    }

    #[test]
    fn a_folder_a_fifo_and_a_device_are_no_logs_and_nothing_waits_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        for (path, kind) in
            [(folder.path(), "a folder"), (&fifo, "a pipe"), (Path::new("/dev/zero"), "a device")]
        {
            let error = TickLog::from_begin(path, 60.0).poll(0).unwrap_err().to_string();
            assert_eq!(error, format!("it is {kind}; name a regular file"));
        }
    }

    #[test]
    fn a_log_whose_name_a_fifo_takes_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.log");
        let mut log = TickLog::from_begin(&path, 60.0);
        fs::write(&path, line(1_000, 1)).unwrap();
        assert_eq!(on_time(&log.poll(0).unwrap()), [] as [u64; 0], "more of that second may come");
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(log.poll(u64::MAX).is_err());
        assert_eq!(log.take_notices(), [TickLogNotice::Replaced]);
        fs::remove_file(&path).unwrap();
        fs::write(&path, line(2_000, 2)).unwrap();
        assert_eq!(on_time(&log.poll(u64::MAX).unwrap()), [1, 2]);
    }

    #[test]
    fn of_a_log_that_grows_without_end_a_part_is_read_at_once() {
        assert_eq!(to_read_now(10, 4), 6);
        assert_eq!(to_read_now(4, 10), 0);
        assert_eq!(to_read_now(u64::MAX, 4), POLLED_BYTES_MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_log_that_grows_in_arbitrary_pieces_reads_as_a_whole(cuts in proptest::collection::vec(1usize..200, 1..30)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("game.log");
            let text: String = (1..=12).map(|second| line(second * 1_000, second)).collect();
            let mut log = TickLog::from_begin(&path, 60.0);
            let mut file = File::create(&path).unwrap();
            let (mut rest, mut seconds) = (text.as_bytes(), Vec::new());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                file.write_all(piece).unwrap();
                seconds.extend(log.poll(0).unwrap());
                rest = after;
            }
            file.write_all(rest).unwrap();
            seconds.extend(log.poll(u64::MAX).unwrap());
            prop_assert_eq!(on_time(&seconds), (1..=12).collect::<Vec<u64>>());
        }
    }
}

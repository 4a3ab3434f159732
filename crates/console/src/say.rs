//! All output goes through here: no terminal control sequences except our own colours, and no secrets.
//!
//! Text comes from servers under test, from scenarios and from stores that others wrote. An escape sequence in it could
//! hide lines, overwrite earlier ones or type into a shell. Control characters, and those that reorder or hide text,
//! are shown as JSON escapes (`\u001b`), which is also valid inside JSON.
//! In results, foreign text was masked on input, so a short number that remains is one of our figures (`masks`).
//! Not here: what is written to files, which is left unchanged.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exit::{Exit, Failure};
use crate::layout;
use crate::masks::{mask, mask_json, mask_own};

/// The colours and weights that we print (`anstyle`): what may follow `ESC [` before an `m`.
const OUR_STYLES: [&str; 10] = ["0", "1", "2", "4", "31", "32", "33", "34", "35", "36"];
/// A line longer than this is printed in pieces; so much is kept at most.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Of one message no more characters are shown.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// One line on standard error.
#[macro_export]
macro_rules! err_line {
    ($($words:tt)*) => { $crate::say::to_stderr(format_args!("{}\n", format_args!($($words)*))) };
}
/// The same without a line's end.
#[macro_export]
macro_rules! err_text {
    ($($words:tt)*) => { $crate::say::to_stderr(format_args!($($words)*)) };
}
/// Text of our own on standard error: results and the progress line, in which what others said is masked already.
#[macro_export]
macro_rules! err_own_text {
    ($($words:tt)*) => { $crate::say::own_to_stderr(format_args!($($words)*)) };
}
/// One line on standard output.
#[macro_export]
macro_rules! out_line {
    ($($words:tt)*) => { $crate::say::to_stdout(format_args!("{}\n", format_args!($($words)*))) };
}
/// The same without a line's end.
#[macro_export]
macro_rules! out_text {
    ($($words:tt)*) => { $crate::say::to_stdout(format_args!($($words)*)) };
}
pub use {err_line, err_own_text, err_text, out_line, out_text};

/// What a terminal would obey, reorder or hide, made visible. Ends of lines, tabs and our own colours stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(letter) = text[at..].chars().next() {
        let length = match letter {
            '\n' | '\t' => 1,
            '\x1b' => our_style(&text[at..]).unwrap_or(0),
            _ if is_harmful(letter) => 0,
            _ => letter.len_utf8(),
        };
        if length == 0 {
            out += &text[kept..at];
            for unit in letter.encode_utf16(&mut [0; 2]) {
                out += &format!("\\u{unit:04x}");
            }
            kept = at + letter.len_utf8();
        }
        at += length.max(letter.len_utf8());
    }
    if kept == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[kept..]) }
}

/// A text of others in one line, as it may stand inside a sentence.
pub fn in_line(text: &str) -> String {
    own_in_line(&mask(text))
}

/// The same of a text of our own.
pub fn own_in_line(text: &str) -> String {
    harmless(&mask_own(text)).replace('\n', "\\n").replace('\t', "\\t")
}

/// The length of one of our own style sequences that begins here.
fn our_style(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\x1b[")?;
    let (style, _) = rest.split_once('m')?;
    OUR_STYLES.contains(&style).then(|| "\x1b[m".len() + style.len())
}

fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, Arabic letter mark, zero-width, direction, separators, fillers.
            '\u{ad}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            // Tags: invisible letters.
            | '\u{e0000}'..='\u{e007f}')
}

/// Text that was written through it comes out harmless, line by line.
pub struct Harmless<W: Write> {
    inner: W,
    waiting: Vec<u8>,
    /// it may quote others who were not masked yet
    may_quote: bool,
}

impl<W: Write> Harmless<W> {
    /// Around a stream that may be a terminal, for texts of our own.
    pub fn new(inner: W) -> Self {
        Harmless { inner, waiting: Vec::new(), may_quote: false }
    }

    /// The same for messages, which may quote an answer that is stored nowhere.
    fn of_messages(inner: W) -> Self {
        Harmless { inner, waiting: Vec::new(), may_quote: true }
    }

    fn pass_on(&mut self, count: usize) -> io::Result<()> {
        let rest = self.waiting.split_off(count);
        let whole = std::mem::replace(&mut self.waiting, rest);
        // Invalid UTF-8 becomes the replacement character.
        let text = String::from_utf8_lossy(&whole);
        let masked = if self.may_quote { mask(&text) } else { mask_own(&text) };
        self.inner.write_all(harmless(&masked).as_bytes())
    }
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if let Some(end) = self.waiting.iter().rposition(|byte| *byte == b'\n') {
            self.pass_on(end + 1)?;
        } else if self.waiting.len() > LINE_BYTES_MAX {
            let whole = match std::str::from_utf8(&self.waiting) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => self.waiting.len(),
            };
            self.pass_on(whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.waiting.len())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Harmless<W> {
    fn drop(&mut self) {
        // Callers that need to know about an error flush.
        let _ = self.flush();
    }
}

/// The reader of standard output has closed its pipe.
static READER_LEFT: AtomicBool = AtomicBool::new(false);
/// Standard output did not take everything, for another reason.
static NOT_ALL_PRINTED: AtomicBool = AtomicBool::new(false);

/// Standard output, which remembers that its reader has left.
#[derive(Debug)]
pub struct Stdout(anstream::AutoStream<io::Stdout>);

impl Stdout {
    fn noted<T>(outcome: io::Result<T>) -> io::Result<T> {
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            READER_LEFT.store(true, Relaxed);
        }
        outcome
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Stdout::noted(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Stdout::noted(self.0.flush())
    }
}

/// Standard output for callers that write pieces of text.
pub fn stdout() -> Harmless<Stdout> {
    Harmless::new(Stdout(anstream::stdout()))
}

/// How a command ends once what it printed is known. A reader that has enough (`| head`) ends it in silence and with success,
/// but the verdict of a run stays; output that was cut short for any other reason is no success.
pub fn end_of(outcome: Result<Exit, Failure>) -> Exit {
    match outcome {
        Ok(Exit::Met) if NOT_ALL_PRINTED.load(Relaxed) => Exit::NotMeasured,
        Ok(code) => code,
        Err((_, error)) if has_reader_left() && is_closed_pipe(&error) => Exit::Met,
        Err((code, failure)) => {
            error(&failure);
            code
        }
    }
}

/// Whether the reader of standard output has closed it: text that could not be printed since then was not wanted.
pub fn has_reader_left() -> bool {
    READER_LEFT.load(Relaxed)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_so = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_so))
}

/// Standard output as a separate file, for a thread that may block on its reader and so must not hold the lock under
/// which everything else is printed. The caller sanitises each line.
pub fn stdout_as_file() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// A view that covers the whole terminal, and what was said since.
struct Cover {
    /// takes the view away
    lift: fn(),
    said: Vec<Said>,
}

/// A text that waits, and whether it may quote others.
type Said = (String, bool);

static COVER: Mutex<Option<Cover>> = Mutex::new(None);

fn cover() -> MutexGuard<'static, Option<Cover>> {
    COVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a view covers the terminal: what is said on standard error waits for `uncovered`, which calls `lift` first.
pub fn covered(lift: fn()) {
    *cover() = Some(Cover { lift, said: Vec::new() });
}

/// Takes the view away, where there is one, and prints what has waited.
pub fn uncovered() {
    let Some(Cover { lift, said }) = cover().take() else { return };
    lift();
    said.iter().for_each(|(text, may_quote)| print_on_stderr(text, *may_quote));
}

/// Prints a message on standard error, as far as it takes it.
pub fn to_stderr(words: fmt::Arguments<'_>) {
    said_on_stderr(words.to_string(), true);
}

/// Prints a text of our own on standard error, as far as it takes it.
pub fn own_to_stderr(words: fmt::Arguments<'_>) {
    said_on_stderr(words.to_string(), false);
}

fn said_on_stderr(text: String, may_quote: bool) {
    match &mut *cover() {
        Some(cover) => cover.said.push((text, may_quote)),
        None => print_on_stderr(&text, may_quote),
    }
}

fn print_on_stderr(text: &str, may_quote: bool) {
    let stderr = anstream::stderr();
    let mut out = if may_quote { Harmless::of_messages(stderr) } else { Harmless::new(stderr) };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints on standard output. A closed reader is no error; any other error is reported on standard error.
pub fn to_stdout(words: fmt::Arguments<'_>) {
    uncovered();
    let mut out = stdout();
    report_trouble(out.write_fmt(words).and_then(|()| out.flush()));
}

fn report_trouble(printed: io::Result<()>) {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            NOT_ALL_PRINTED.store(true, Relaxed);
            err_line!("stepladder: not everything could be printed on standard output: {error}");
        }
        _ => {}
    }
}

/// Prints JSON on standard output: it stays valid JSON whatever the secrets are.
pub fn json_to_stdout(json: &str) {
    report_trouble(write_json(&mut Stdout(anstream::stdout()), json));
}

/// One line of JSON, or several.
fn write_json(out: &mut impl Write, json: &str) -> io::Result<()> {
    writeln!(out, "{}", json_line(json)).and_then(|()| out.flush())
}

/// JSON without secrets and harmless on a terminal.
pub fn json_line(json: &str) -> String {
    harmless(&mask_json(json)).into_owned()
}

/// A message in one breath: the chain of causes, without those that an outer message has quoted already, and of a text as long
/// as a book its beginning.
pub fn error(error: &anyhow::Error) {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said += &format!(": {cause}");
        }
    }
    err_line!("stepladder: {}", shortened(&said));
}

/// What clap says: help and version on standard output, mistakes on standard error.
pub fn usage(said: &clap::Error) {
    let text = said.render().ansi().to_string();
    match layout::columns() {
        // What clap does not wrap: usage lines, and tables after the options.
        Some(columns) if !said.use_stderr() => out_text!("{}", layout::broken_at(&text, columns)),
        None if !said.use_stderr() => out_text!("{text}"),
        _ => err_text!("{text}"),
    }
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => format!("{}… ({} bytes more)", &text[..end], text.len() - end).into(),
    }
}

/// Puts a text that changes in place of the line where the cursor is; empty: takes it away. For a terminal only.
pub fn in_place(text: &str) {
    let mut out = anstream::stderr();
    // Return to the start of the line, and clear to its end.
    let _ = write!(out, "\r\x1b[K{}", own_in_line(text)).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_our_colours_stay() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected);
        check("plain ü ☃ 😀\twords\n", "plain ü ☃ 😀\twords\n");
        check("\x1b[1mbold\x1b[0m \x1b[32mPASS\x1b[0m", "\x1b[1mbold\x1b[0m \x1b[32mPASS\x1b[0m");
        check("\x1b[2Jx", "\\u001b[2Jx");
        check("\x1b]0;title\x07", "\\u001b]0;title\\u0007");
        // Hidden text is a style too, and not one of ours.
        check("\x1b[8mx\x1b[38;5;1m", "\\u001b[8mx\\u001b[38;5;1m");
        check("a\rb\x08\x7f\u{9b}2J", "a\\u000db\\u0008\\u007f\\u009b2J");
        check("\u{202e}txt\u{e0041}", "\\u202etxt\\udb40\\udc41");
        check("\x1b", "\\u001b");
        check("", "");
        assert_eq!(in_line("a\nb"), "a\\nb");
    }

    #[test]
    fn what_is_said_below_a_view_waits_and_the_view_is_lifted_once() {
        static LIFTED: AtomicUsize = AtomicUsize::new(0);
        covered(|| _ = LIFTED.fetch_add(1, Relaxed));
        to_stderr(format_args!("waits\n"));
        assert!(cover().as_ref().is_some_and(|cover| cover.said.contains(&("waits\n".to_owned(), true))));
        uncovered();
        uncovered();
        assert!(cover().is_none() && LIFTED.load(Relaxed) == 1);
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({ "a\u{9b}\u{202e}": "x\u{1b}\u{7f}\u{e0041}\n" });
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let shown = harmless(&text);
        assert_ne!(shown, text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn a_message_as_long_as_a_book_is_shown_by_its_beginning() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"x".repeat(50_000_000)).into_owned();
        assert!(
            long.len() < 2 * MESSAGE_CHARS_MAX && long.ends_with("(49996000 bytes more)"),
            "{}",
            long.len()
        );
    }

    proptest! {
        #[test]
        fn no_text_gets_an_escape_through_however_it_is_cut(
            pieces in proptest::collection::vec("[\u{0}-\u{ff}\u{1b}\\[m0-9]{0,8}", 0..20),
        ) {
            let mut out = Harmless::new(Vec::new());
            for piece in &pieces {
                out.write_all(piece.as_bytes()).expect("memory takes it");
            }
            out.flush().expect("memory takes it");
            let shown = String::from_utf8(std::mem::take(&mut out.inner)).expect("text");
            let whole = pieces.concat();
            prop_assert_eq!(&shown, &harmless(&whole));
            for (at, _) in shown.match_indices('\x1b') {
                prop_assert!(our_style(&shown[at..]).is_some());
            }
            prop_assert!(!shown.contains(|letter: char| is_harmful(letter) && !"\x1b\n\t".contains(letter)));
        }
    }
}

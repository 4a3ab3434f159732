//! What is live, as a client counts it itself: a line that names the grouping, then one per type or function.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use super::{Heap, HeapBy, HeapError, HeapType, TOP, TYPES_MAX, plain};

/// A longer line is none of ours.
const LINE_BYTES_MAX: u64 = 16 << 10;

impl Heap {
    /// Reads `by type` or `by function`, then lines of bytes, objects and name. Lines of one name are added up.
    ///
    /// Errors: the first line is another, a line lacks something, or the sums do not fit 64 bits.
    pub fn read_table(mut table: impl BufRead) -> Result<Heap, HeapError> {
        let first = line(&mut table, 1)?.unwrap_or_default();
        let by = match first.as_str() {
            "by type" => HeapBy::Type,
            "by function" => HeapBy::Function,
            _ => return Err(wrong(1, "it says neither `by type` nor `by function`")),
        };
        let mut by_name: HashMap<String, (u64, u64)> = HashMap::new();
        let (mut bytes, mut objects) = (0u64, 0u64);
        for number in 2.. {
            let Some(text) = line(&mut table, number)? else { break };
            let mut parts = text.splitn(3, ' ');
            let mut count = || parts.next().and_then(|part| part.parse::<u64>().ok());
            let (Some(held), Some(alive)) = (count(), count()) else {
                return Err(wrong(number, "it does not begin with bytes and objects"));
            };
            let name = parts.next().filter(|name| !name.trim().is_empty());
            let name = plain(name.ok_or_else(|| wrong(number, "it names nothing"))?);
            let sums = bytes.checked_add(held).zip(objects.checked_add(alive));
            (bytes, objects) = sums.ok_or_else(|| wrong(number, "the sums do not fit 64 bits"))?;
            // No partial sum is larger than the total.
            let of_name = by_name.entry(name).or_default();
            *of_name = (of_name.0 + held, of_name.1 + alive);
            if by_name.len() > TYPES_MAX {
                return Err(wrong(number, "it has more names than any program"));
            }
        }
        let named = |(name, (bytes, objects))| HeapType { name, bytes, objects };
        let mut types: Vec<HeapType> = by_name.into_iter().map(named).collect();
        types.sort_by(|one, other| (Reverse(one.bytes), &one.name).cmp(&(Reverse(other.bytes), &other.name)));
        types.truncate(TOP);
        Ok(Heap { by, bytes, objects, types })
    }
}

/// The next line without its ending; `None` after the last.
fn line(table: &mut impl BufRead, number: u64) -> Result<Option<String>, HeapError> {
    let mut bytes = Vec::new();
    table.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    // A truncated table must not pass for a small one.
    if bytes.pop() != Some(b'\n') {
        return Err(wrong(number, "it was cut off, or is too long"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| wrong(number, "it is not UTF-8"))
}

fn wrong(line: u64, why: &'static str) -> HeapError {
    HeapError::Table { line, why }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::NAME_CHARS_MAX;
    use super::super::tests::{check_damaged, damage};
    use super::*;

    const PLANTED: &str = "by type\n400 10 byte[]\n24000000 1000000 KeptValue\n100 5 byte[]\n0 0 Empty\n";

    fn read(text: &[u8]) -> Result<Heap, HeapError> {
        Heap::read_table(text)
    }

    #[test]
    fn the_largest_come_first_and_lines_of_one_name_are_one() {
        let heap = read(PLANTED.as_bytes()).unwrap();
        let one = |name: &str, bytes, objects| HeapType { name: name.to_owned(), bytes, objects };
        let types = vec![one("KeptValue", 24_000_000, 1_000_000), one("byte[]", 500, 15), one("Empty", 0, 0)];
        assert_eq!(heap, Heap { by: HeapBy::Type, bytes: 24_000_500, objects: 1_000_015, types });
        let functions = read(b"by function\n8 1 main.keep(...)\n").unwrap();
        assert_eq!((functions.by, functions.types[0].name.as_str()), (HeapBy::Function, "main.keep(...)"));
        assert_eq!(read(b"by type\n").unwrap().objects, 0);
    }

    #[test]
    fn ten_are_listed_and_all_are_counted() {
        let lines: String = (1..=30).map(|number| format!("{number} 1 Type{number}\n")).collect();
        let heap = read(format!("by type\n{lines}").as_bytes()).unwrap();
        assert_eq!((heap.types.len(), heap.types[0].bytes, heap.bytes, heap.objects), (10, 30, 465, 30));
    }

    #[test]
    fn a_table_that_is_none_is_refused_with_its_line() {
        let check = |text: &str, expected: &str| {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("", "line 1: it says neither");
        check("by class\n", "line 1: it says neither");
        check("by type\n1 2\n", "line 2: it names nothing");
        check("by type\n1 2  \n", "line 2: it names nothing");
        check("by type\n1 -2 A\n", "line 2: it does not begin with bytes and objects");
        check("by type\n1 1 A\nA\n", "line 3: it does not begin");
        check(&format!("by type\n{} 1 A\n1 1 B\n", u64::MAX), "line 3: the sums");
        check("by type\n1 1 A", "line 2: it was cut off");
        check(&format!("by type\n1 1 {}\n", "A".repeat(20_000)), "line 2: it was cut off, or is too long");
        assert!(read(b"by type\n1 1 \xff\n").unwrap_err().to_string().contains("not UTF-8"));
        let long = read(format!("by type\n1 1 {}\u{7}\n", "\u{7}".repeat(300)).as_bytes()).unwrap();
        assert_eq!(long.types[0].name.chars().count(), NAME_CHARS_MAX, "a name on one line");
    }

    proptest! {
        #[test]
        fn damaged_bytes_give_a_heap_or_an_error(damage in damage(PLANTED)) {
            check_damaged(PLANTED, damage, read);
        }
    }
}

use super::*;

fn rows(file: &str, text: &str) -> Result<Rows, String> {
    let owned = text.to_owned();
    let read = move |_: &Path| Ok(owned.clone());
    Rows::read(Path::new(file), &read, How::Unique).map_err(|mistake| mistake.to_string())
}

#[test]
fn rows_are_read_as_their_author_meant_them() {
    for (file, text, expected) in [
        ("u.csv", "name,pass\nann,1\n", vec![r#"{"name":"ann","pass":"1"}"#]),
        ("u.csv", "\u{feff}name\r\nann\r\nbob", vec![r#"{"name":"ann"}"#, r#"{"name":"bob"}"#]),
        ("u.csv", "a,b\n\"x,\n\"\"y\"\"\",2\n", vec![r#"{"a":"x,\n\"y\"","b":"2"}"#]),
        ("u.csv", "a,b\n,\n", vec![r#"{"a":"","b":""}"#]),
        ("u.csv", "a\n\n\n1\n", vec![r#"{"a":"1"}"#]),
        ("u.csv", "__proto__,a\nx,1\n", vec![r#"{"__proto__":"x","a":"1"}"#]),
        ("u.jsonl", "{\"b\":1,\"a\":[2]}\n\n{}\n", vec![r#"{"b":1,"a":[2]}"#, "{}"]),
    ] {
        let rows = rows(file, text).unwrap();
        assert_eq!(rows.rows.iter().map(|row| &**row).collect::<Vec<_>>(), expected, "{text:?}");
    }
}

#[test]
fn a_file_that_is_not_whole_is_refused_with_its_line() {
    for (file, text, expected) in [
        ("u.csv", "a,b\n1,2\n\"x\ny\",3\n4\n", "u.csv:5:1: this row has 1 values and the head names 2"),
        ("u.csv", "a,b\n\n\n1\n", "u.csv:4:1: this row has 1 values"),
        ("u.csv", "a,b\n1,2,3\n", "u.csv:2:1: this row has 3 values and the head names 2"),
        ("u.csv", "a,a\n1,2\n", "u.csv:1:1: the head names the column \"a\" twice"),
        ("u.csv", "a,\n1,2\n", "u.csv:1:1: a column of the head has no name"),
        ("u.csv", "a\n", "u.csv: it has no rows"),
        ("u.csv", "", "u.csv: it has no rows"),
        ("u.jsonl", "{}\n[1]\n", "u.jsonl:2:1: this line is no JSON object"),
        ("u.ndjson", "{}\n\n{\n", "u.ndjson:3:1: this line is no JSON"),
    ] {
        let words = rows(file, text).unwrap_err();
        assert!(words.contains(expected), "{words}");
    }
    let read = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let missing = Rows::read(Path::new("u.csv"), &read, How::Wrap).unwrap_err().to_string();
    assert!(missing.contains("u.csv: cannot be read"), "{missing}");
}

#[test]
fn each_bot_has_its_own_row_or_one_that_it_shares() {
    let rows = rows("u.csv", "n\n0\n1\n2\n").unwrap();
    let number =
        |bot, how, chance| rows.of(bot, how, chance).map(|row| row.replace(['{', '}', '"', 'n', ':'], ""));
    for (bot, how, chance, expected) in [
        (0, How::Unique, 0.9, Some("0")),
        (2, How::Unique, 0.0, Some("2")),
        (3, How::Unique, 0.0, None),
        (3, How::Wrap, 0.0, Some("0")),
        (u64::MAX, How::Wrap, 0.0, Some("0")),
        (9, How::Shared, 0.0, Some("0")),
        (9, How::Shared, 0.999_999, Some("2")),
    ] {
        assert_eq!(number(bot, how, chance).as_deref(), expected, "{bot} {how:?}");
    }
    assert!(rows.suffice_for(3).is_ok());
    let words = rows.suffice_for(4).unwrap_err().to_string();
    assert!(words.contains("u.csv: it has 3 rows and 4 bots take one each"), "{words}");
}

//! What is said of agents that are there, and of those that are not.

use super::*;

fn hello(name: &str) -> Hello {
    Hello {
        name: name.to_owned(),
        version: VERSION.to_owned(),
        wire: WIRE,
        arch: "x86_64".to_owned(),
        ..Hello::default()
    }
}

#[test]
fn too_few_agents_are_said_with_why_those_there_do_not_count() {
    let old = Hello { version: "0.0.1".to_owned(), wire: 7, ..hello("old") };
    let same_number = Hello { wire: WIRE + 1, ..hello("patched") };
    let taken = Hello { session: Some("ab".to_owned()), ..hello("taken") };
    let version = |name: &str, what: &str| {
        format!("; agent {name} is version {what}, and this is {VERSION} ({WIRE}): both must be the same")
    };
    for (known, more) in [
        (vec![], String::new()),
        (vec![hello("free")], String::new()),
        (vec![old.clone()], version("old", "0.0.1 (7)")),
        (vec![same_number], version("patched", &format!("{VERSION} ({})", WIRE + 1))),
        (vec![taken.clone()], "; agent taken plays for another climb".to_owned()),
        (vec![old, taken], version("old", "0.0.1 (7)") + "; agent taken plays for another climb"),
    ] {
        let said = too_few("nats://10.0.0.1:4222", 3, 1, known.iter()).to_string();
        let begins = "1 of 3 agents are there; start more with stepladder agent --nats nats://10.0.0.1:4222, or ask for fewer";
        assert_eq!(said, format!("{begins}{more}"));
    }
}

#[test]
fn agents_with_different_processors_are_said_once_with_what_that_means() {
    let arm = Hello { arch: "aarch64".to_owned(), ..hello("b") };
    assert_eq!(of_kinds([hello("a"), hello("b")].iter()), None);
    assert_eq!(of_kinds([arm.clone()].iter()), None);
    let said = of_kinds([hello("a"), arm.clone(), arm].iter()).expect("they differ");
    assert!(said.starts_with("the agents have different processors (aarch64, x86_64): "), "{said}");
    let hostile = Hello { arch: "\u{1b}[31mred".to_owned(), ..hello("c") };
    let said = of_kinds([hello("a"), hostile].iter()).expect("they differ");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

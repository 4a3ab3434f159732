//! What may be changed: labels, and whole runs may be deleted.

use crate::given::{self, Client};

#[test]
fn labels_are_written_and_taken_away() {
    let (given, run, viewer) = given::recorded("master", &[500.0], 3);
    let client = Client::of(&viewer);
    let path = format!("/api/runs/{run}/labels");
    let kept = client.send("PUT", &path, br#"{"name":"the new ticker","tags":"a,b"}"#);
    assert_eq!(kept.status, 200, "{kept:?}");
    assert_eq!(client.get("/api/runs").json()["runs"][0]["labels"]["name"], "the new ticker");
    client.send("PUT", &path, br#"{"name":null,"tags":""}"#);
    assert_eq!(given.store.run(&run).unwrap().labels.len(), 0);
}

#[test]
fn what_is_no_label_is_refused_and_changes_nothing() {
    let (given, run, viewer) = given::recorded("master", &[500.0], 3);
    let client = Client::of(&viewer);
    let path = format!("/api/runs/{run}/labels");
    let long = format!(r#"{{"note":"{}"}}"#, "x".repeat(10_001));
    for body in ["", "[]", "nonsense", r#"{"name":1}"#, r#"{"":"x"}"#, r#"{"good":"x","name":{}}"#, &long] {
        let refused = client.send("PUT", &path, body.as_bytes());
        assert_eq!(refused.status, 422, "{body:.20}: {refused:?}");
    }
    assert_eq!(client.send("PUT", &path, &vec![b' '; 100_000]).status, 413);
    assert_eq!(client.send("PUT", "/api/runs/nobody/labels", b"{}").status, 404);
    assert_eq!(given.store.run(&run).unwrap().labels.len(), 0);
}

#[test]
fn a_run_is_deleted_when_its_id_is_said_twice() {
    let (given, run, viewer) = given::recorded("master", &[500.0], 3);
    let client = Client::of(&viewer);
    for wrong in ["", "?confirm=", "?confirm=yes", "?confirm=master"] {
        assert_eq!(client.send("DELETE", &format!("/api/runs/{run}{wrong}"), b"").status, 409, "{wrong}");
    }
    // Its name identifies it elsewhere, but not here.
    assert_eq!(client.send("DELETE", "/api/runs/master?confirm=master", b"").status, 404);
    assert_eq!(given.store.runs().unwrap().runs.len(), 1);
    assert_eq!(client.send("DELETE", &format!("/api/runs/{run}?confirm={run}"), b"").status, 200);
    assert_eq!(given.store.runs().unwrap().runs.len(), 0);
}

#[test]
fn a_pinned_run_and_one_that_goes_on_stay() {
    let given = given::store();
    let pinned = given::record_run(&given, "pinned", &[500.0], 3);
    let writer = given.store.begin_run(&given::run_head("live"), None).unwrap();
    let live = writer.id().clone();
    let viewer = given::serve(&given, Vec::new());
    let client = Client::of(&viewer);
    client.send("PUT", &format!("/api/runs/{pinned}/labels"), br#"{"pinned":"true"}"#);
    for run in [&pinned, &live] {
        let refused = client.send("DELETE", &format!("/api/runs/{run}?confirm={run}"), b"");
        assert_eq!(refused.status, 409, "{refused:?}");
    }
    client.send("PUT", &format!("/api/runs/{pinned}/labels"), br#"{"pinned":"false"}"#);
    assert_eq!(client.send("DELETE", &format!("/api/runs/{pinned}?confirm={pinned}"), b"").status, 200);
    drop(writer);
}

#[test]
fn nothing_else_can_be_done_to_a_run() {
    let (_given, run, viewer) = given::recorded("master", &[500.0], 3);
    let client = Client::of(&viewer);
    for (method, path) in [
        ("POST", format!("/api/runs/{run}")),
        ("PUT", format!("/api/runs/{run}/trials/0")),
        ("DELETE", format!("/api/runs/{run}/trials/0?confirm={run}")),
        ("POST", "/api/runs".to_owned()),
        ("PATCH", format!("/api/runs/{run}/labels")),
    ] {
        assert_eq!(client.send(method, &path, b"{}").status, 405, "{method} {path}");
    }
}

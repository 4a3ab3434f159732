//! What a function is called for people, and whose it is, from the name that `perf` gives it.

/// What a frame of the server's own code begins with.
pub(super) const OWN: &str = "user:";

/// The innermost function of the server's own code in a stack, `KIND:FUNCTION;…` from the outermost inwards.
pub(super) fn own_function(stack: &str) -> Option<&str> {
    stack.rsplit(';').find_map(|frame| frame.strip_prefix(OWN))
}

/// The same, or the innermost function of all where none is the server's own.
pub(super) fn function(stack: &str) -> &str {
    let innermost = || stack.rsplit(';').next().and_then(|frame| frame.split_once(':'));
    own_function(stack).or_else(|| Some(innermost()?.1)).unwrap_or_default()
}

/// `KIND:NAME` of a frame as inferno marks it: `_[k]` the kernel's, `_[j]` from a map of compiled functions. `is_runtime`: code that
/// is in no map is that of a runtime, whatever its name.
pub(super) fn frame(marked: &str, is_runtime: bool) -> String {
    let (kind, name) = if let Some(name) = marked.strip_suffix("_[k]") {
        ("kernel", name.to_owned())
    } else if let Some(name) = marked.strip_suffix("_[j]") {
        compiled(name)
    } else {
        let name = marked.strip_suffix("_[i]").unwrap_or(marked);
        (if is_runtime || is_library(name) { "runtime" } else { "user" }, name.to_owned())
    };
    format!("{kind}:{}", name.replace(char::is_control, " "))
}

/// Functions that a runtime compiled: V8 writes `JS:*name PATH:LINE:COLUMN`, Python `py::name:PATH`, Java `L…;::name` or
/// `void a.b.Name.method(…)`.
fn compiled(name: &str) -> (&'static str, String) {
    for tag in ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"] {
        if let Some(rest) = name.strip_prefix(tag) {
            return of_v8(rest.trim_start_matches(['*', '~', '^', '+', '\'', '"']));
        }
    }
    if let Some((function, path)) = name.strip_prefix("py::").and_then(|rest| rest.split_once(':')) {
        let is_library = path.starts_with('<') || path.contains("/lib/python");
        return (if is_library { "runtime" } else { "user" }, format!("{function} ({})", file_of(path)));
    }
    let is_jvm = OF_JDK.iter().any(|start| {
        name.starts_with(start) || name.split(' ').nth(1).is_some_and(|second| second.starts_with(start))
    });
    let is_own = !is_jvm && (name.contains('.') || name.starts_with('L') && name.contains("::"));
    (if is_own { "user" } else { "runtime" }, name.to_owned())
}

/// What names of the JDK's own functions begin with.
const OF_JDK: [&str; 9] =
    ["java.", "javax.", "jdk.", "sun.", "com.sun.", "Ljava/", "Ljdk/", "Lsun/", "Lcom/sun/"];

/// `KIND:NAME` of a function `a.b.Class.method`.
pub(super) fn of_java(name: &str) -> String {
    let is_jdk = OF_JDK.iter().any(|start| name.starts_with(start));
    format!("{}:{}", if is_jdk { "runtime" } else { "user" }, name.replace(char::is_control, " "))
}

/// `name PATH:LINE:COLUMN`; a path may hold blanks, and begins with `/`, `file:` or `node:`.
fn of_v8(text: &str) -> (&'static str, String) {
    let begin = ["file:", "node:", "/"].iter().filter_map(|start| {
        let at = text.find(&format!(" {start}"))?;
        Some((at, at + 1))
    });
    let (name, place) = match begin.min() {
        Some((end, from)) => (&text[..end], &text[from..]),
        None if text.starts_with(['/']) || text.starts_with("file:") => ("", text),
        None => return ("runtime", text.to_owned()),
    };
    let name = if name.trim().is_empty() { "(anonymous)" } else { name.trim() };
    let without_column = match place.rsplit_once(':') {
        Some((rest, column))
            if is_number(column) && rest.rsplit_once(':').is_some_and(|(_, line)| is_number(line)) =>
        {
            rest
        }
        _ => place,
    };
    let is_own = !place.starts_with("node:");
    (if is_own { "user" } else { "runtime" }, format!("{name} ({})", file_of(without_column)))
}

/// A frame of a program that was stripped, as the server's own; `None`: it has a name, or is a library's.
pub(super) fn nameless(frame: &str) -> Option<String> {
    let program = frame.strip_prefix("runtime:[")?.strip_suffix(']')?;
    let is_program = !["unknown", "vdso", "vsyscall", "heap", "stack", "anon"].contains(&program)
        && !program.contains(".so")
        && !program.starts_with("//");
    is_program.then(|| format!("{OWN}functions without names ({program})"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn file_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Names of languages with paths tell whose a function is; those of C belong to libraries and interpreters.
fn is_library(name: &str) -> bool {
    let bare = name.trim_start_matches(['<', '&', '*', '_']);
    let is_rust =
        name.contains("::") && !["core::", "alloc::", "std::"].iter().any(|start| bare.starts_with(start));
    // Of the packages of a Go program only `main` is surely its own, and those whose path begins with a host.
    let is_go = name.starts_with("main.")
        || name
            .split_once('/')
            .is_some_and(|(host, _)| host.contains('.') && !host.contains(['(', ' ', '[']));
    // C++ of V8 and Node has paths too.
    let bare = bare.trim_start_matches("non-virtual thunk to ");
    let is_node =
        ["v8::", "node::", "heap::base::", "cppgc::", "icu_"].iter().any(|start| bare.starts_with(start));
    (!is_rust || is_node) && !is_go
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runtimes_become_names_of_functions_with_their_file() {
        for (marked, expected) in [
            ("JS:*renderReport file:///srv/x/report.mjs:12:28_[j]", "user:renderReport (report.mjs:12)"),
            ("JS:^handle /srv/x/my app/server.js:7:1_[j]", "user:handle (server.js:7)"),
            ("JS:~ /srv/x/server.js:7:1_[j]", "user:(anonymous) (server.js:7)"),
            ("LazyCompile:*Server.reply /srv/x/server.js:7_[j]", "user:Server.reply (server.js:7)"),
            ("JS:*processTimers node:internal/timers:499:25_[j]", "runtime:processTimers (timers:499)"),
            ("Builtin:ArrayMap_[j]", "runtime:Builtin:ArrayMap"),
            ("py::render:/srv/app/report.py_[j]", "user:render (report.py)"),
            ("py::loads:/usr/lib/python3.12/json/__init__.py_[j]", "runtime:loads (__init__.py)"),
            ("void org.example.Report.render_[j]", "user:void org.example.Report.render"),
            ("int java.util.HashMap.hash_[j]", "runtime:int java.util.HashMap.hash"),
            (
                "void com.sun.net.httpserver.Filter$Chain.doFilter_[j]",
                "runtime:void com.sun.net.httpserver.Filter$Chain.doFilter",
            ),
            ("Interpreter_[j]", "runtime:Interpreter"),
            ("main.render", "user:main.render"),
            ("example.com/shop.(*Cart).Sum", "user:example.com/shop.(*Cart).Sum"),
            ("runtime.mallocgc", "runtime:runtime.mallocgc"),
            ("arena_server::playing::tick", "user:arena_server::playing::tick"),
            ("v8::internal::Heap::Scavenge", "runtime:v8::internal::Heap::Scavenge"),
            (
                "non-virtual thunk to node::LibuvStreamWrap::DoTryWrite",
                "runtime:non-virtual thunk to node::LibuvStreamWrap::DoTryWrite",
            ),
            ("memmove", "runtime:memmove"),
            ("tcp_sendmsg_[k]", "kernel:tcp_sendmsg"),
            ("JS:*_[j]", "runtime:"),
            ("JS:*a\u{7}b /x.js:1:1_[j]", "user:a b (x.js:1)"),
        ] {
            assert_eq!(frame(marked, false), expected, "{marked}");
        }
        // C++ of a Java virtual machine looks like a program's own.
        for (marked, expected) in [
            ("JavaCalls::call_helper", "runtime:JavaCalls::call_helper"),
            ("main.render", "runtime:main.render"),
            ("py::render:/srv/app/report.py_[j]", "user:render (report.py)"),
        ] {
            assert_eq!(frame(marked, true), expected, "{marked}");
        }
    }
}

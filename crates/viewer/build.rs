//! Builds the page from /web with npm and writes it as one file to OUT_DIR, where `bundle.rs` embeds it.
//!
//! A published crate has it in `page.html` (packaging/crates), and needs no npm.
//! A checkout without npm, or without a network for `npm ci`, still builds: the embedded page then says what is missing
//! and how to get it. `STEPLADDER_NO_WEB=1` skips npm on purpose. Nothing runs while nothing under /web has changed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A build without npm's packages in its cache must not wait longer than this for both steps together.
const PATIENCE: Duration = Duration::from_secs(55);
/// What the page is made of; tests, fixtures and what npm installs are no part of it.
const SOURCES: [&str; 6] =
    ["src", "index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json"];

fn main() {
    let crate_folder = PathBuf::from(env("CARGO_MANIFEST_DIR"));
    let web = crate_folder.join("../../web");
    let page = PathBuf::from(env("OUT_DIR")).join("page.html");
    println!("cargo::rerun-if-env-changed=STEPLADDER_NO_WEB");
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    let built =
        if std::env::var_os("STEPLADDER_NO_WEB").is_some_and(|value| value != "0" && !value.is_empty()) {
            Err("STEPLADDER_NO_WEB was set when this program was built".to_owned())
        } else {
            build(&web, &page)
        };
    if let Err(why) = built {
        println!("cargo::warning=the viewer's page was not built: {why}");
        fs::write(&page, instead(&why)).expect("OUT_DIR can be written");
    }
}

fn env(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}

fn build(web: &Path, page: &Path) -> Result<(), String> {
    if !web.join("package-lock.json").exists() {
        let packed = Path::new("page.html");
        let copied = fs::copy(packed, page);
        return copied
            .map(drop)
            .map_err(|error| format!("there is no {}, and {}: {error}", web.display(), packed.display()));
    }
    let until = Instant::now() + PATIENCE;
    if !is_installed(web) {
        // No retries: without a network they only delay the build.
        npm(web, &["ci", "--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries=0"], until)?;
    }
    let folder = page.with_file_name("web");
    let to = folder.display().to_string();
    npm(
        web,
        &["run", "--silent", "build", "--", "--outDir", &to, "--emptyOutDir", "--logLevel", "warn"],
        until,
    )?;
    let built = folder.join("index.html");
    fs::copy(&built, page).map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(())
}

/// npm leaves its own lock file after installing; it is as new as its source.
fn is_installed(web: &Path) -> bool {
    let changed = |name: &str| fs::metadata(web.join(name)).and_then(|file| file.modified()).ok();
    match (changed("node_modules/.package-lock.json"), changed("package-lock.json")) {
        (Some(installed), Some(asked)) => installed >= asked,
        _ => false,
    }
}

fn npm(web: &Path, words: &[&str], until: Instant) -> Result<(), String> {
    let log = PathBuf::from(env("OUT_DIR")).join("npm.log");
    let file = || File::create(&log).map_err(|error| format!("{}: {error}", log.display()));
    let started = Command::new("npm")
        .args(words)
        .current_dir(web)
        .stdin(Stdio::null())
        .stdout(file()?)
        .stderr(file()?)
        .spawn();
    let mut child = started.map_err(|error| format!("npm cannot be started ({error})"))?;
    let said = || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with("npm warn"))
            .take(3)
            .collect::<Vec<_>>()
            .join("; ")
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => return Err(format!("npm {} failed ({})", words[0], said())),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(50)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("npm {} took longer than {} s", words[0], PATIENCE.as_secs()));
            }
            Err(error) => return Err(format!("npm {}: {error}", words[0])),
        }
    }
}

/// The page that replaces the one that could not be built.
fn instead(why: &str) -> String {
    let why = why.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"stepladder\" content=\"no page\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Stepladder</title></head><body>\
         <h1>The page is not part of this build</h1><p>{why}.</p>\
         <p>Install Node.js 20 or newer with npm (Debian: <code>apt-get install npm</code>; others: \
         <a href=\"https://nodejs.org\">nodejs.org</a>), make sure that npm reaches its registry once, and build again: \
         <code>cargo build --release</code>.</p>\
         <p>Everything else works: <code>stepladder runs</code>, <code>stepladder show RUN</code>, \
         <code>stepladder ticks FILE</code>, and the JSON below <code>/api/runs</code>.</p></body></html>\n"
    )
}

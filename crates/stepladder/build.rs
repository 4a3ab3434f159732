//! Compresses the release binary's debug sections: they are half of it, and needed only for a backtrace or a profile.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") {
        // LLD compresses well only at level 2.
        println!("cargo::rustc-link-arg-bins=-Wl,-O2,--compress-debug-sections=zlib");
    }
}

//! What a coordinator spends on 10, 100 and 1,000 agents, in seconds of CPU per second of a hold:
//! `cargo run --release -p stepladder-agents --features simulation --example many`.

fn main() {
    println!(
        "agents  operations  requests/s each  bytes per agent and s  coordinator, share of a core  memory"
    );
    for (agents, ops, requests) in
        [(10, 10, 100), (100, 10, 100), (1_000, 10, 100), (1_000, 1, 1_000), (1_000, 100, 10)]
    {
        let cost = agents::simulation::cost(agents, ops, requests, 5);
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let rss =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?").trim().to_owned();
        println!(
            "{agents:6}  {ops:10}  {:15}  {:21.0}  {:27.1} %  {rss}",
            ops as u64 * requests,
            cost.bytes,
            100.0 * cost.cpu_s
        );
    }
}

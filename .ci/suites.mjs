// Builds the workspace's tests and runs the test programs several at a time: most of their tests wait, and `cargo test`
// runs one program after another. Scripts that test the program in other ways run behind them, several at a time too: a browser
// beside them takes the time that loads need to be judged. Run by ../check.
//   node .ci/suites.mjs [SCRIPT…]
// The seconds of every test stand in target/suites.txt afterwards, longest first. The first program that fails ends it.
// AT_A_TIME=N: how many programs run at a time (default: the number of cores).
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, relative } from "node:path";
import { createInterface } from "node:readline";

// Examples are linted and not linked: no test runs one.
const flags = ["--workspace", "--features", "stepladder/otlp", "--lib", "--bins", "--tests"];
const scripts = process.argv.slice(2).map((line) => ({ name: line, line, folder: "." }));
// The end-to-end tests take longest: what starts first ends the whole soonest. Those of agents are two at a time, as two sets of
// network namespaces: beside the others they would wait for each other and keep their threads.
const END_TO_END = "crates/stepladder/tests/it";
const AGENTS = "agents::";
const LONG = [END_TO_END, `${END_TO_END} ${AGENTS}`, "servers/tests/it", "proof/truth/tests/oracles"];
// `./check --quick` leaves the end-to-end runs out: of their program it takes what only reads files.
const isQuick = Boolean(process.env.STEPLADDER_QUICK);

const run = (command, args, options) => {
    const child = spawn(command, args, options);
    const ended = new Promise((resolve, reject) => {
        child.on("error", reject);
        const end = (code, signal) => resolve(code ?? `signal ${signal}`);
        child.on("close", end);
        // A server that a test left behind may hold the pipe.
        child.on("exit", (code, signal) => setTimeout(end, 2000, code, signal).unref());
    });
    return { child, ended };
};

async function build() {
    const args = ["test", "--no-run", "--message-format=json-render-diagnostics", ...flags];
    const { child, ended } = run("cargo", args, { stdio: ["ignore", "pipe", "inherit"] });
    const programs = [];
    for await (const line of createInterface({ input: child.stdout })) {
        const message = JSON.parse(line);
        if (message.reason !== "compiler-artifact" || !message.profile.test || !message.executable) continue;
        const folder = dirname(message.manifest_path);
        const isUnit = !message.target.kind.includes("test");
        const name = isUnit ? relative("", folder) : `${relative("", folder)}/tests/${message.target.name}`;
        const program = { name, path: message.executable, folder, filters: [] };
        if (name !== END_TO_END) programs.push(program);
        else if (isQuick) programs.push({ ...program, filters: ["docs::", "tidy::"] });
        else {
            programs.push({ ...program, filters: ["--skip", AGENTS] });
            programs.push({ ...program, name: `${name} ${AGENTS}`, filters: [AGENTS, "--test-threads", "2"] });
        }
    }
    if ((await ended) !== 0) process.exit(101);
    const rank = ({ name }) => (LONG.includes(name) ? LONG.indexOf(name) : LONG.length);
    return programs.sort((a, b) => rank(a) - rank(b));
}

const running = new Set();
const tests = [];
const notRun = new Set();

function start(program) {
    const stdio = ["ignore", "pipe", "pipe"];
    // In a group of its own: what it starts ends with it.
    if (program.line) return run("bash", ["-c", program.line], { stdio, detached: true });
    // The times of tests are an unstable option of their harness. In order of their names: shuffled, more of the loads that need a core
    // to themselves meet, and take it from each other.
    const args = ["--show-output", "-Zunstable-options", "--report-time", ...program.filters];
    const env = { ...process.env, RUSTC_BOOTSTRAP: "1", CARGO_MANIFEST_DIR: program.folder };
    return run(program.path, args, { cwd: program.folder, env, stdio });
}

async function test(program) {
    const began = performance.now();
    const { child, ended } = start(program);
    running.add(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
    const code = await ended;
    running.delete(child);
    const seconds = (performance.now() - began) / 1000;
    for (const [, name, took] of output.matchAll(/^test (\S+).* <([\d.]+)s>$/gm)) tests.push([Number(took), `${program.name.split(" ")[0]} ${name}`]);
    for (const [line] of output.matchAll(/^.*NOT RUN.*$/gm)) notRun.add(line.replace(/^[!\s]+/, "").trim());
    const result = /^test result: .*$/m.exec(output)?.[0] ?? (code === 0 ? "ok" : `ended with ${code}`);
    const whole = code === 0 ? "" : `${output}\n`;
    console.log(`${whole}${program.name}: ${seconds.toFixed(1)} s. ${result}`);
    return code;
}

const programs = await build();
const stop = () => {
    for (const child of running) process.kill(child.spawnargs[0] === "bash" ? -child.pid : child.pid, "SIGTERM");
};
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]]) {
    process.on(signal, () => {
        stop();
        process.exit(code);
    });
}
const atATime = Number(process.env.AT_A_TIME || availableParallelism());

async function all(jobs) {
    const next = jobs[Symbol.iterator]();
    const worker = async () => {
        for (const program of next) if ((await test(program)) !== 0) return program;
    };
    const workers = Array.from({ length: atATime }, async () => {
        const failed = await worker();
        if (!failed) return;
        stop();
        console.log(`\n${failed.name} failed; again: (cd ${failed.folder} && ${failed.line ?? [failed.path, ...failed.filters].join(" ")})`);
        process.exit(101);
    });
    await Promise.all(workers);
}

const began = performance.now();
await all(programs);
tests.sort(([a], [b]) => b - a);
writeFileSync("target/suites.txt", tests.map(([took, name]) => `${took.toFixed(3)} ${name}\n`).join(""));
const sum = tests.reduce((sum, [took]) => sum + took, 0);
console.log(`${tests.length} tests in ${((performance.now() - began) / 1000).toFixed(0)} s (${sum.toFixed(0)} s of tests; target/suites.txt)`);
await all(scripts);
for (const line of notRun) console.log(`!! ${line}`);

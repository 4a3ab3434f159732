// An HTTP/1.1 server whose limit has one planted cause: node server.mjs --port N --cause NAME
import cluster from 'node:cluster';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { renderReport } from './report.mjs';

const CAUSES = [
    'none', 'single-thread', 'cpu-bound', 'lock', 'pause', 'max-connections', 'fd-limit', 'slow-disk', 'hidden-sync',
    'alloc',
];
const options = Object.fromEntries(process.argv.slice(2).map((word, at, all) => [word, all[at + 1]]));
const port = Number(options['--port']);
const cause = options['--cause'] ?? 'none';
if (!Number.isInteger(port) || !CAUSES.includes(cause)) {
    console.error(`usage: node server.mjs --port N --cause ${CAUSES.join('|')}`);
    process.exit(2);
}

/** Uses so much CPU time, however long that takes. */
function burn(ms) {
    const used = () => { const { user, system } = process.cpuUsage(); return user + system; };
    const until = used() + ms * 1000;
    let word = 1;
    while (used() < until) for (let step = 0; step < 5000; step++) word = Math.imul(word, 31) + step;
    return word;
}

/** One at a time, in the order of the calls; whoever waits, waits for a promise. */
let last = Promise.resolve();
function oneAtATime(work) {
    last = last.then(work);
    return last;
}

/** What a cache that is built anew in place costs: 300 ms in which nothing else happens. */
function rebuildIndex() {
    const until = performance.now() + 300;
    let word = 1;
    while (performance.now() < until) word = Math.imul(word, 31) + 1;
    return word;
}

let disk;
let written = 0;
/** 10 ms of writes to a log that must be on the disk, however many these are. */
async function writeAndSync() {
    const until = performance.now() + 10;
    while (performance.now() < until) {
        if (written === 64 << 20) {
            await disk.truncate(0);
            written = 0;
        }
        await disk.write(Buffer.alloc(4096), 0, 4096, written);
        written += 4096;
        await disk.sync();
    }
}

const recent = [];
/** Tells of every request of the last 3 s in each answer: with twice the load, each of them takes twice the memory. */
function listRecent() {
    const now = performance.now();
    recent.push(now);
    while (recent[0] < now - 3000) recent.shift();
    return JSON.stringify(recent.map((at) => ({ agoMs: now - at, text: `a request ${(now - at).toFixed(1)} ms ago` })));
}

let requests = 0;
let changes = 0;
async function work() {
    requests += 1;
    changes += 1;
    if (cause === 'single-thread') burn(1);
    if (cause === 'cpu-bound') burn(2);
    if (cause === 'lock') await oneAtATime(() => new Promise((done) => { setTimeout(done, 5); }));
    if (cause === 'slow-disk') await oneAtATime(writeAndSync);
    if (cause === 'alloc') listRecent();
    if (cause === 'hidden-sync' && requests % 20 === 0) renderReport();
}

async function serve() {
    if (cause === 'fd-limit') {
        const limit = fs.readFileSync('/proc/self/limits', 'utf8').match(/open files +(\d+)/)?.[1];
        if (limit !== '64') {
            console.error(`Node cannot set its own limit: start it by prlimit --nofile=64 node … (now ${limit})`);
            process.exit(2);
        }
    }
    if (cause === 'slow-disk') {
        // Without a name from here on, so that nothing stays behind.
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'causes-'));
        disk = await fs.promises.open(path.join(folder, 'journal'), 'w');
        fs.rmSync(folder, { recursive: true });
    }
    if (cause === 'pause') {
        setInterval(() => {
            if (changes >= 100) rebuildIndex();
            changes = 0;
        }, 2000);
    }
    const server = http.createServer(async (request, response) => {
        await work();
        response.setHeader('Content-Type', 'text/plain');
        response.end('well\n');
    });
    server.keepAliveTimeout = 60_000;
    if (cause === 'max-connections') server.maxConnections = 40;
    server.listen({ port, host: '127.0.0.1', backlog: 1024 }, () => {
        if (!cluster.isWorker || cluster.worker.id === 1) console.log(`listening on 127.0.0.1:${port}`);
    });
}

if (cause === 'cpu-bound' && cluster.isPrimary) {
    for (let core = 0; core < os.availableParallelism(); core++) cluster.fork();
    process.on('SIGTERM', () => {
        for (const worker of Object.values(cluster.workers)) worker.process.kill();
        process.exit(0);
    });
} else {
    await serve();
}

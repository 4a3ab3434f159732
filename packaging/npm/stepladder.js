#!/usr/bin/env node
// Starts the program that the package of this platform holds, in place of this process as far as Node.js can: its exit code and the
// signal that ended it become ours.
'use strict'
const { spawn } = require('node:child_process')
const { constants } = require('node:os')

const name = `@stepladder/${process.platform}-${process.arch}`
let program
try {
  program = require.resolve(`${name}/bin/stepladder`)
} catch {
  console.error(`stepladder: there is no ${name}; it runs on Linux (x64, arm64). If npm was told to omit optional packages, install them.`)
  process.exit(3)
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
// A terminal sends these to both; who sends them to this process alone means the program.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => process.stdin.isTTY && signal === 'SIGINT' || child.kill(signal))
}
child.on('error', error => {
  console.error(`stepladder: ${program} cannot be started: ${error.message}`)
  process.exit(3)
})
child.on('exit', (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]))
